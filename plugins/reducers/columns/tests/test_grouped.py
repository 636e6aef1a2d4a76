"""A phase by time and by URL: the same numbers for every cut of its requests into batches."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.rundir import journal
from aiperf.sdk.columns import BOUND_COLUMNS, Bounds, Column, Floats, Ragged, RecordBatch, ragged
from aiperf.sdk.metric import Aggregation, Metric, MetricDeclaration, Needs, RunDistribution, RunMetric, Totals, Unit
from aiperf.sdk.summary import Result
from aiperf_reducer_columns.statistics import fold
from aiperf_reducer_columns.statistics.catalogue import Catalogue, Offer
from aiperf_reducer_columns.statistics.grouped import BySlice, ByUrl, Grouping, MergedGroups
from aiperf_reducer_columns.statistics.phase_counts import Tally, kinds
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_reducer_columns.statistics.totals import merged_folds, parts, survival
from aiperf_testing.batches import busy_batch, sample_batch
from aiperf_testing.plans import sample_ref
from hypothesis import given, settings
from hypothesis import strategies as st

MS = 10**6
WIDTH = 20 * MS
SLICES = 6


class Latency(Metric):
    tag, title, unit, display = "latency", "Latency", Unit.NANOSECONDS, Unit.MILLISECONDS
    adjusted, since = True, "started_ns"

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["started_ns"]


class FirstToken(Latency):
    tag, title, early = "first", "First", True

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class Tokens(Metric):
    tag, title, unit, arriving = "tokens", "Tokens", Unit.TOKENS, True

    def column(self, batch: RecordBatch) -> Column:
        return batch["output_tokens"]


class Gaps(Metric):
    tag, title, unit, display = "gaps", "Gaps", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")

    def bounds(self, batch: RecordBatch) -> Bounds:
        return Bounds(*map(batch.lists, BOUND_COLUMNS[:3]))


class Count(Metric):
    tag, title, unit, fold = "count", "Count", Unit.REQUESTS, Aggregation.SUM

    def column(self, batch: RecordBatch) -> Column:
        return np.ones(len(batch))


class TotalTokens(RunMetric):
    tag, title, unit, needs = "total", "Total", Unit.TOKENS, ("tokens",)

    def number(self, run: Totals) -> float | None:
        return run.sum("tokens")


class Rate(RunMetric):
    tag, title, unit, needs = "rate", "Rate", Unit.REQUESTS_PER_SECOND, ("count",)

    def number(self, run: Totals) -> float | None:
        count = run.value("count")
        return None if count is None or run.duration_s is None else count / run.duration_s


class Sooner(RunDistribution):
    tag, title, unit, display = "sooner", "Sooner", Unit.NANOSECONDS, Unit.MILLISECONDS
    needs = reads = ("latency",)

    def values(self, run: Totals) -> Floats | None:
        values = run.values("latency")
        return None if values is None else values - MS


def listing() -> Catalogue:
    metrics: Sequence[MetricDeclaration] = (
        Latency(), FirstToken(), Tokens(), Gaps(), Count(), TotalTokens(), Rate(), Sooner(),
    )  # fmt: skip
    return Catalogue([Offer(sample_ref("metrics"), metric) for metric in metrics], Needs.NOTHING)


Discovery = dict[int, tuple[Tally, dict[str, Result]]]


def found(grouping: Grouping, pipelines: Sequence[Pipeline], count: int) -> Discovery:
    groups = [each for pipeline in pipelines for each in pipeline.groups() if each.grouping == grouping.name]
    together = MergedGroups(groups, 0, count - 1)
    return {group: (tally, results) for group, tally, results in parts(listing(), together, range(count), lambda _: 0.5)}


def folded(path: Path, cut: Sequence[Sequence[RecordBatch]]) -> tuple[Discovery, Discovery, dict[str, Result]]:
    """Slices, URLs and survival from the batches of each of some reducers."""
    by_slice, by_url = BySlice(WIDTH), ByUrl()
    pipelines = []
    for i, batches in enumerate(cut):
        pipeline = Pipeline(listing(), path, f"{len(cut)}-{i}", {0: [by_slice, by_url]})
        pipeline.begins_ns[0] = 1.0 * MS
        for batch in batches:
            pipeline.feed(pipeline.score(batch))
        pipelines.append(pipeline)
    survived = survival(listing(), merged_folds(each.folds() for each in pipelines)[0])
    return found(by_slice, pipelines, SLICES), found(by_url, pipelines, 3), survived


def shuffled(batch: RecordBatch, reducers: int, seed: int) -> list[list[RecordBatch]]:
    draw = random.Random(seed)
    rows = list(range(len(batch)))
    draw.shuffle(rows)
    cut: list[list[RecordBatch]] = [[] for _ in range(reducers)]
    while rows:
        size = draw.randint(1, len(rows))
        draw.choice(cut).append(batch.take(np.array(rows[:size])))
        del rows[:size]
    return cut


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_shuffling_splitting_and_merging_change_no_number_of_slices_or_urls(
    tmp_path_factory: pytest.TempPathFactory, seed: int, reducers: int, bucketed: bool
) -> None:
    path, batch = tmp_path_factory.mktemp("groups"), busy_batch()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fold, "BUDGET", 40 if bucketed else 10**6)
        patched.setattr(fold, "IN_MEMORY", 16)
        (path / "whole").mkdir()
        assert folded(path, shuffled(batch, reducers, seed)) == folded(path / "whole", [[batch]])


def test_the_sample_reaches_every_kind_of_outcome_and_of_number(tmp_path: Path) -> None:
    batch = busy_batch()
    slices, urls, survived = folded(tmp_path, [[batch]])
    became = Tally(kinds={int(kind): int((kinds(batch) == kind).sum()) for kind in np.unique(kinds(batch))}).outcomes
    assert set(became) == {"completed", "failed", "cut", "empty", "aborted", "unfinished"}
    assert all(results.keys() >= {"adj_latency", "gaps", "total", "rate"} for _, results in urls.values())
    assert sum(tally.started for tally, _ in slices.values()) == len(batch)
    assert {tag: result.stats["censored"] > 0 for tag, result in survived.items()} == {"latency": True, "first": True}
    assert survived["latency"].stats["censored"] > survived["first"].stats["censored"]


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    batch = busy_batch()
    whole = np.nansum(np.where(batch.valid, batch["output_tokens"], np.nan))
    for groups in folded(tmp_path, [[batch]])[:2]:
        assert sum(results["total"].stats["avg"] for _, results in groups.values()) == whole
        assert sum(results["count"].stats["avg"] for _, results in groups.values()) == batch.valid.sum()
        gaps = [results["gaps"].stats["count"] for _, results in groups.values() if "gaps" in results]
        assert sum(gaps) == len(batch.select(batch.valid).lists("gap_ns").values)


def batch_of(*requests: dict[str, Any]) -> RecordBatch:
    """Requests with only the columns that a slice reads; times in ms."""
    base = sample_batch(len(requests))
    columns = dict(base.columns)
    for name in ("started_ns", "first_token_ns", "last_token_ns", "ended_ns", "output_tokens"):
        columns[name] = np.array([float(request.get(name, math.nan)) for request in requests])
    instants = [request.get("chunks", []) for request in requests]
    pieces = [request.get("pieces", [1.0] * len(request.get("chunks", []))) for request in requests]
    columns["piece_count"] = ragged(pieces, instants)
    columns["gap_ns"] = ragged([np.diff(each).tolist() for each in instants], [each[1:] for each in instants])
    outcome = np.array([float(request.get("outcome", journal.COMPLETED)) for request in requests])
    columns["outcome"] = outcome
    columns["fault"] = np.full(len(requests), math.nan)
    return RecordBatch(columns, outcome == journal.COMPLETED, base.texts)


def test_requests_count_where_they_end_chunks_and_tokens_where_they_arrive(
    tmp_path: Path,
) -> None:
    """Slices of 20 ms from 1 ms on: 1 to 21, 21 to 41, 41 to 61.  Nothing ends in the second."""
    batch = batch_of(
        {"started_ns": 2 * MS, "first_token_ns": 10 * MS, "last_token_ns": 45 * MS, "ended_ns": 46 * MS, "output_tokens": 9,
         "chunks": [10 * MS, 25 * MS, 45 * MS]},
        {"started_ns": 22 * MS, "first_token_ns": 30 * MS, "last_token_ns": 41 * MS, "ended_ns": 41 * MS, "output_tokens": 4,
         "chunks": [30 * MS, 41 * MS], "pieces": [3.0, 1.0]},
    )  # fmt: skip
    slices, _, _ = folded(tmp_path, [[batch]])
    assert [slices[i][0].started for i in range(3)] == [1, 1, 0]
    assert [slices[i][0].outcomes for i in range(3)] == [{}, {}, {"completed": 2}]
    assert [slices[i][1]["total"].stats["avg"] for i in range(3)] == [3, 3 + 3, 3 + 1]
    assert [slices[i][1]["count"].stats["avg"] for i in range(3)] == [0, 0, 2]
    assert [slices[i][1]["rate"].stats["avg"] for i in range(3)] == [0, 0, 4]
    assert [slices[i][1].get("gaps") and slices[i][1]["gaps"].stats["sum"] for i in range(3)] == [None, 15, 20 + 11]
    assert slices[2][1]["latency"].stats["max"] == 43
    assert "latency" not in slices[0][1]


def test_an_instant_at_the_phases_end_is_in_its_last_slice(tmp_path: Path) -> None:
    end = (1 + 20 * SLICES) * MS
    times = dict.fromkeys(("first_token_ns", "last_token_ns", "ended_ns"), end)
    batch = batch_of({"started_ns": MS, **times, "output_tokens": 1, "chunks": [end]})
    slices, _, _ = folded(tmp_path, [[batch]])
    assert slices[SLICES - 1][1]["total"].stats == {"avg": 1}


def test_a_request_cut_off_in_flight_lasted_at_least_until_then(tmp_path: Path) -> None:
    batch = batch_of(
        {"started_ns": 0, "first_token_ns": 5 * MS, "last_token_ns": 9 * MS, "ended_ns": 9 * MS, "chunks": [5 * MS]},
        {"started_ns": 0, "first_token_ns": 7 * MS, "last_token_ns": 8 * MS, "ended_ns": 20 * MS, "outcome": journal.ABORTED},
        {"started_ns": 0, "ended_ns": 20 * MS, "outcome": journal.ABORTED},
    )
    _, _, survived = folded(tmp_path, [[batch]])
    counts = {tag: (each.stats["count"], each.stats["censored"]) for tag, each in survived.items()}
    assert counts == {"latency": (3, 2), "first": (3, 1)}
    assert survived["first"].stats["p50"] == pytest.approx(7)
    assert "p50" not in survived["latency"].stats


def merged(row: int, at_ms: Sequence[float], gaps_ms: Sequence[float], batch: RecordBatch) -> RecordBatch:
    """The batch, with a request whose gaps are known by their sum alone; each stands where it was read."""
    parts = {"gap_ns": gaps_ms, "gap_low_ns": [0.0] * len(gaps_ms), "gap_high_ns": [sum(gaps_ms)] * len(gaps_ms)}
    lists = {name: ragged(*([[value * MS for value in part] if i == row else [] for i in range(len(batch))]
                            for part in (values, at_ms))) for name, values in parts.items()}  # fmt: skip
    none = lists["gap_ns"]
    lists["gap_slack_ns"] = Ragged(np.zeros(len(none.values)), none.offsets, none.at_ns)
    return RecordBatch({**batch.columns, **lists, **_no_seconds(batch)}, batch.valid, batch.texts)


def _no_seconds(batch: RecordBatch) -> dict[str, Column]:
    return {name: np.full(len(batch), math.nan) for name in BOUND_COLUMNS[3:]}


def test_estimates_within_a_slice_have_the_bounds_of_their_span(tmp_path: Path) -> None:
    request = {
        "started_ns": 2 * MS,
        "first_token_ns": 4 * MS,
        "last_token_ns": 16 * MS,
        "ended_ns": 16 * MS,
        "output_tokens": 3,
    }
    batch = merged(0, [16, 16], [4, 8], batch_of(request))
    for groups in folded(tmp_path, [[batch]])[:2]:
        gaps = next(results["gaps"] for _, results in groups.values() if "gaps" in results)
        assert (gaps.lower["p50"], gaps.stats["p50"], gaps.upper["p50"]) == (0, 6, 12)
        assert gaps.lower["sum"] == gaps.stats["sum"] == gaps.upper["sum"] == 12


def test_a_span_over_two_slices_bounds_the_sum_of_each(tmp_path: Path) -> None:
    request = {
        "started_ns": 2 * MS,
        "first_token_ns": 4 * MS,
        "last_token_ns": 30 * MS,
        "ended_ns": 30 * MS,
        "output_tokens": 3,
    }
    batch = merged(0, [10, 30], [6, 20], batch_of(request))
    slices, urls, _ = folded(tmp_path, [[batch]])
    assert [(each.lower["sum"], each.stats["sum"], each.upper["sum"]) for each in (slices[i][1]["gaps"] for i in range(2))] == [
        (0, 6, 26), (0, 20, 26),
    ]  # fmt: skip
    assert [slices[i][1]["gaps"].upper["max"] for i in range(2)] == [26, 26]
    (whole,) = (results["gaps"] for _, results in urls.values() if "gaps" in results)
    assert whole.lower["sum"] == whole.upper["sum"] == 26


def test_known_values_beside_estimates_keep_their_place(tmp_path: Path) -> None:
    requests = [
        {"started_ns": 2 * MS, "first_token_ns": 4 * MS, "last_token_ns": 16 * MS, "ended_ns": 16 * MS, "output_tokens": 3}
    ]
    known = batch_of({**requests[0], "chunks": [4 * MS, 7 * MS]})
    estimated = merged(0, [16, 16], [4, 8], batch_of(*requests))
    slices, _, _ = folded(tmp_path, [[known, estimated]])
    gaps = slices[0][1]["gaps"]
    assert (gaps.stats["count"], gaps.lower["min"], gaps.upper["min"], gaps.upper["max"]) == (3, 0, 3, 12)
    assert folded(tmp_path, [[known], [estimated]])[0] == slices


def test_a_distribution_of_the_run_is_given_by_time_slice_and_url(tmp_path: Path) -> None:
    by_slice, by_url, _ = folded(tmp_path, [[sample_batch()]])
    parts_with_it = [results for _, results in (*by_slice.values(), *by_url.values()) if "latency" in results]
    assert parts_with_it
    for results in parts_with_it:
        assert results["sooner"].stats["p50"] == pytest.approx(results["latency"].stats["p50"] - 1)
