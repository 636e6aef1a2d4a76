"""Metrics over batches: ordered, isolated, and folded to the same numbers for every cut of the requests."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.errors import ConfigError
from aiperf.sdk.columns import BOUND_COLUMNS, Bounds, Column, Floats, Ragged, RecordBatch, ragged
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.metric import (
    Aggregation,
    Analysis,
    Metric,
    MetricDeclaration,
    MetricFamily,
    Needs,
    Over,
    PerRequestMetric,
    RequestView,
    RunDistribution,
    RunMetric,
    Totals,
    Unit,
)
from aiperf.sdk.plan import OutputPlan
from aiperf.sdk.raw_values import RawValues
from aiperf.sdk.summary import Result
from aiperf_reducer_columns.statistics import fold
from aiperf_reducer_columns.statistics.catalogue import Catalogue, Offer, catalogue, needs_of
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_reducer_columns.statistics.totals import Analyses, PhaseTotals, merged_folds
from aiperf_testing.batches import assert_same, sample_batch
from aiperf_testing.journals import Plain, plan_for
from aiperf_testing.plans import sample_ref
from hypothesis import given, settings
from hypothesis import strategies as st


class Latency(Metric):
    tag, title, unit, display, order = "latency", "Latency", Unit.NANOSECONDS, Unit.MILLISECONDS, 300

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"] - batch["started_ns"]


class Rate(Metric):
    """Thirds: their sums depend on the order of adding, unless they are exact."""

    tag, title, unit, needs = "rate", "Rate", Unit.TOKENS_PER_SECOND, ("latency",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["output_tokens"] / (batch["latency"] / 1e9) / 3


class Gaps(Metric):
    tag, title, unit, display = "gaps", "Gaps", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch.lists("gap_ns")


class Valid(Metric):
    tag, title, unit, fold, per_record = "valid", "Valid", Unit.REQUESTS, Aggregation.SUM, False

    def column(self, batch: RecordBatch) -> Column:
        return np.ones(len(batch))


class Failed(Valid):
    tag, over = "failed", Over.FAILED


class Everything(Valid):
    tag, over = "everything", Over.ALL


class First(Valid):
    tag, fold, unit, over = "first", Aggregation.MIN, Unit.NANOSECONDS, Over.ALL

    def column(self, batch: RecordBatch) -> Column:
        return batch["started_ns"]


class Last(First):
    tag, fold = "last", Aggregation.MAX


class Throughput(RunMetric):
    tag, title, unit, needs = "throughput", "Throughput", Unit.REQUESTS_PER_SECOND, ("valid",)

    def number(self, run: Totals) -> float | None:
        count = run.value("valid")
        return count / run.duration_s if count and run.duration_s else None


class PerThroughput(RunMetric):
    tag, title, unit, needs = "per", "Per", Unit.RATIO, ("throughput", "latency")

    def number(self, run: Totals) -> float | None:
        throughput, total = run.value("throughput"), run.sum("latency")
        return total / throughput / run.count("latency") if throughput and total else None


ALL: tuple[type[MetricDeclaration], ...] = (
    PerThroughput, Throughput, Rate, Latency, Gaps, Valid, Failed, Everything, First, Last,
)  # fmt: skip


def plugin(distribution: str, version: str) -> PluginRef:
    return PluginRef("metrics", distribution, "acme:Metric", distribution, version)


def listing(*metrics: MetricDeclaration, has: Needs = Needs.NOTHING) -> Catalogue:
    return Catalogue([Offer(sample_ref("metrics"), metric) for metric in metrics], has)


def everything() -> Catalogue:
    return listing(*(kind() for kind in ALL))


def results(metrics: Catalogue, pipelines: Iterable[Pipeline], phase: int = 0) -> dict[str, Result]:
    folds = merged_folds(each.folds() for each in pipelines)
    census = PhaseCounts()
    for each in pipelines:
        if phase in each.counts:
            census.merge(each.counts[phase])
    duration = (census.last_end_ns - census.first_start_ns) / 1e9
    counts = {"valid": census.valid, "failed": census.failed}
    totals = PhaseTotals(metrics, folds.get(phase, {}), duration_s=duration, window_s=None, **counts)
    return totals.results()


def reduced(path: Path, *batches: RecordBatch, metrics: Catalogue | None = None) -> dict[str, Result]:
    metrics = metrics if metrics is not None else everything()
    pipeline = Pipeline(metrics, path, "0")
    for batch in batches:
        pipeline.feed(pipeline.score(batch))
    metrics.switch_off(pipeline.off)
    return results(metrics, [pipeline])


def test_each_metric_comes_behind_what_it_needs() -> None:
    order = list(everything().metrics)
    for tag, needs in (("rate", "latency"), ("throughput", "valid"), ("per", "throughput"), ("per", "latency")):
        assert order.index(needs) < order.index(tag)


def test_a_metric_without_its_need_is_left_out_with_a_warning() -> None:
    found = listing(PerThroughput(), Throughput(), Latency())
    assert list(found.metrics) == ["latency"]
    assert found.warnings == [
        "metric throughput of acme 1.2 is left out: it needs valid, which isn't there",
        "metric per of acme 1.2 is left out: it needs throughput, which isn't there",
    ]


def test_a_metric_whose_need_does_not_apply_is_left_out_silently() -> None:
    class Streamed(Latency):
        requires = Needs.STREAMING

    found = listing(Streamed(), Rate(), Valid())
    assert (list(found.metrics), found.warnings) == (["valid"], [])
    assert set(listing(Streamed(), Rate(), has=Needs.STREAMING).metrics) == {"latency", "rate"}


def test_metrics_in_a_circle_are_left_out_and_named() -> None:
    class One(Latency):
        tag, needs = "one", ("two",)

    class Two(Latency):
        tag, needs = "two", ("one",)

    found = listing(One(), Two(), Valid())
    assert list(found.metrics) == ["valid"]
    (warning,) = found.warnings
    assert warning == "metrics that need each other are left out: one → two → one"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [((0, 0, 0), (0, 0, 1)), ((0, 5, 1), (0, 6, 0)), ((0, 9, 1), (1, 0, 0))],
    ids=["a stranger over ours", "the higher priority", "a pin"],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_tag_goes_to_the_plugin_with_the_greatest_claim(ours: Any, theirs: Any, swapped: bool) -> None:
    offers = [Offer(plugin("ours", "1"), Latency(), ours), Offer(plugin("theirs", "2"), Latency(), theirs)]
    found = Catalogue(offers[::-1] if swapped else offers, Needs.NOTHING)
    assert found.owner("latency") == "theirs 2"
    assert found.warnings == ["metric latency of ours 1 is shadowed by that of theirs 2"]
    assert found.shadowed == {"metrics:theirs": ["ours 1"]}


def test_a_tag_of_two_equal_claims_goes_to_neither() -> None:
    offers = [Offer(plugin(name, "1"), Latency(), (0, 0, 1)) for name in ("one", "two")]
    found = Catalogue([*offers, Offer(plugin("ours", "1"), Latency()), Offer(plugin("ours", "1"), Valid())], Needs.NOTHING)
    assert list(found.metrics) == ["valid"] and found.shadowed == {}
    assert found.warnings == [
        "metric latency is left out: metrics:one (one 1) and metrics:two (two 1) both provide it;"
        " choose with --plugin metrics:one=one or --plugin metrics:two=two"
    ]


class Estimated(Gaps):
    def bounds(self, batch: RecordBatch) -> Bounds:
        return Bounds(*map(batch.lists, BOUND_COLUMNS[:3]))


def with_bounds(batch: RecordBatch, values: Sequence[float], slack: float = 0.0) -> RecordBatch:
    """The batch, its first valid request with these gaps (ns), each of which may be anything up to their sum."""
    row, count = int(np.flatnonzero(batch.valid)[0]), len(batch)
    lists = {"gap_ns": values, "gap_low_ns": [0.0] * len(values), "gap_high_ns": [sum(values)] * len(values)}
    lists["gap_slack_ns"] = [slack] * len(values)
    columns = {name: ragged(*[[part if i == row else [] for i in range(count)]] * 2) for name, part in lists.items()}
    return RecordBatch({**batch.columns, **columns}, batch.valid, batch.texts)


def test_estimates_give_the_midpoint_of_bounds_and_an_exact_mean(tmp_path: Path) -> None:
    gaps = reduced(tmp_path, with_bounds(sample_batch(), [1e6, 3e6]), metrics=listing(Estimated()))["gaps"]
    assert (gaps.lower["p50"], gaps.stats["p50"], gaps.upper["p50"]) == (0.0, 2.0, 4.0)
    assert gaps.lower["avg"] == gaps.stats["avg"] == gaps.upper["avg"] == 2.0
    assert gaps.entry()["upper"] == gaps.upper and gaps.stats["count"] == 2


def test_a_sum_that_is_not_known_bounds_the_mean(tmp_path: Path) -> None:
    batch = sample_batch()
    known = batch.select(batch.valid).lists("gap_ns").values.sum()
    found = reduced(tmp_path, with_bounds(batch, [2e6, 2e6], slack=5e5), batch, metrics=listing(Estimated()))["gaps"]
    assert found.lower["sum"] == pytest.approx((3e6 + known) / 1e6) and found.upper["sum"] == pytest.approx((5e6 + known) / 1e6)
    assert found.stats["avg"] == pytest.approx((found.lower["avg"] + found.upper["avg"]) / 2)


def test_without_merged_reads_there_are_no_bounds(tmp_path: Path) -> None:
    gaps = reduced(tmp_path, sample_batch(), metrics=listing(Estimated()))["gaps"]
    assert gaps.lower == gaps.upper == {} and "lower" not in gaps.entry()


class First(Metric):
    tag, title, unit, display = "first", "First", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]

    def bounds(self, batch: RecordBatch) -> Bounds:
        low = np.fmin(batch["unreadable_ns"], batch["first_token_ns"])
        return Bounds(low - batch["started_ns"], self.column(batch), batch["first_token_ns"] - low)


def test_an_unreadable_event_bounds_the_first_content(tmp_path: Path) -> None:
    batch = sample_batch()
    plain = reduced(tmp_path / "plain", batch, metrics=listing(First()))["first"]
    row = int(np.argmax(np.nan_to_num(batch["first_token_ns"] - batch["started_ns"])))
    early = np.full(len(batch), np.nan)
    early[row] = batch["started_ns"][row] + 1e6
    bounded = RecordBatch({**batch.columns, "unreadable_ns": early}, batch.valid, batch.texts)
    found = reduced(tmp_path / "bounded", bounded, metrics=listing(First()))["first"]
    assert plain.lower == {} and found.upper["max"] == plain.stats["max"] > found.lower["max"]
    assert found.lower["min"] == 1.0 and found.stats["avg"] == pytest.approx(plain.stats["avg"])
    assert found.lower["sum"] == pytest.approx(plain.stats["sum"] - (plain.stats["max"] - 1.0))


class Wait(Metric):
    tag, title, unit, display, adjusted = "wait", "Wait", Unit.NANOSECONDS, Unit.MILLISECONDS, True
    rises = ("first_token_ns",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class PerSecond(Metric):
    """Falls with another metric."""

    tag, title, unit, needs, falls = "per_second", "Per Second", Unit.REQUESTS_PER_SECOND, ("wait",), ("wait",)

    def column(self, batch: RecordBatch) -> Column:
        return 1e9 / batch["wait"]


class Quick(Metric):
    tag, title, unit, fold, needs, falls = "quick", "Quick", Unit.REQUESTS, Aggregation.SUM, ("wait",), ("wait",)

    def column(self, batch: RecordBatch) -> Column:
        return (batch["wait"] < 10e6).astype(float)


class QuickShare(RunMetric):
    tag, title, unit, needs, rises = "quick_share", "Quick Share", Unit.RATIO, ("quick",), ("quick",)

    def number(self, run: Totals) -> float | None:
        return (run.value("quick") or 0.0) / run.valid


class WorstWait(RunMetric):
    """Of a percentile in which failed requests count."""

    tag, title, unit, needs, rises = "worst", "Worst", Unit.MILLISECONDS, ("wait",), ("wait",)

    def number(self, run: Totals) -> float | None:
        return run.statistic("adj_wait", "p50")


def test_what_follows_from_an_estimate_has_bounds_by_what_it_rises_and_falls_with(tmp_path: Path) -> None:
    batch = sample_batch()
    first, started = batch["first_token_ns"], batch["started_ns"]
    merged = np.flatnonzero(batch.valid)[::2]
    low, high = first.copy(), first.copy()
    low[merged], high[merged] = started[merged] + 1e6, first[merged] + 3e6
    gaps = dict.fromkeys(BOUND_COLUMNS[:3], batch.lists("gap_ns"))
    columns = {**batch.columns, **gaps, "first_low_ns": low, "first_high_ns": high}
    listed = listing(Wait(), PerSecond(), Quick(), QuickShare(), WorstWait())
    found = reduced(tmp_path, RecordBatch(columns, batch.valid, batch.texts), metrics=listed)
    valid, scale = batch.valid, 1e-6
    sides = [(side - started)[valid] * scale for side in (low, first, high)]
    wait = found["wait"]
    for result, values in zip((wait.lower, wait.stats, wait.upper), sides, strict=True):
        assert result["avg"] == pytest.approx(values.mean())
        assert [result[name] for name in ("min", "p50", "max")] == pytest.approx([*np.quantile(values, (0, 0.5, 1))])
    speed = found["per_second"]
    for result, values in zip((speed.upper, speed.stats, speed.lower), sides, strict=True):
        assert result["p50"] == pytest.approx(np.quantile(1e3 / values, 0.5))
    counts = [int((values < 10).sum()) for values in reversed(sides)]
    assert counts[0] < counts[2]
    for tag, per in (("quick", 1), ("quick_share", int(valid.sum()))):
        result = found[tag]
        assert [each["avg"] for each in (result.lower, result.stats, result.upper)] == [count / per for count in counts]
        assert result.entry()["lower"] == result.lower
    worse, worst = found["adj_wait"], found["worst"]
    assert worse.lower["p50"] < worse.stats["p50"] < worse.upper["p50"] and "count" not in worse.lower
    assert (worst.lower["avg"], worst.stats["avg"], worst.upper["avg"]) == (
        worse.lower["p50"], worse.stats["p50"], worse.upper["p50"],
    )  # fmt: skip


def test_without_merged_reads_what_is_known_is_read_in_place_of_an_interval() -> None:
    batch = sample_batch()
    assert batch["first_low_ns"] is batch["first_high_ns"] is batch["first_token_ns"]
    assert batch.ends("first_token_ns") is None and Wait().bounds(batch) is None


def test_a_metric_without_estimates_has_no_bounds(tmp_path: Path) -> None:
    found = reduced(tmp_path, with_bounds(sample_batch(), [1e6, 3e6]), metrics=listing(First(), Estimated()))
    assert found["gaps"].lower and found["first"].lower == found["first"].upper == {}


def test_values_are_masked_folded_and_shown_in_the_display_unit(tmp_path: Path) -> None:
    batch = sample_batch()
    found = reduced(tmp_path, batch)
    latencies = (batch["last_token_ns"] - batch["started_ns"])[batch.valid]
    assert found["latency"].stats["p50"] == pytest.approx(np.median(latencies) / 1e6, rel=1e-12)
    assert found["latency"].stats["count"] == batch.valid.sum() == 18
    assert (found["latency"].unit, found["latency"].order) == ("ms", 300)
    assert found["gaps"].stats["count"] == len(batch.lists("gap_ns").values)
    assert [found[tag].stats for tag in ("valid", "failed", "everything")] == [{"avg": 18}, {"avg": 6}, {"avg": 24}]
    assert found["first"].stats == {"avg": batch["started_ns"].min()}
    assert found["last"].stats == {"avg": batch["started_ns"].max()}
    span = (np.nanmax(batch["ended_ns"]) - batch["started_ns"].min()) / 1e9
    assert found["throughput"].stats == {"avg": 18 / span}
    assert found["per"].stats["avg"] == pytest.approx(latencies.mean() / (18 / span), rel=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_shuffling_splitting_and_merging_change_no_number(
    tmp_path_factory: pytest.TempPathFactory, seed: int, reducers: int, bucketed: bool
) -> None:
    path = tmp_path_factory.mktemp("pipeline")
    batch, draw = sample_batch(60, seed=3), random.Random(seed)
    rows = list(range(len(batch)))
    draw.shuffle(rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fold, "BUDGET", 40 if bucketed else 10**6)
        patched.setattr(fold, "IN_MEMORY", 16)
        expected = reduced(path, batch)
        metrics = everything()
        pipelines = [Pipeline(metrics, path, f"r{index}") for index in range(reducers)]
        while rows:
            size = draw.randint(1, len(rows))
            part, rows = rows[:size], rows[size:]
            pipeline = draw.choice(pipelines)
            pipeline.feed(pipeline.score(batch.take(np.array(part))))
        draw.shuffle(pipelines)
        assert results(metrics, pipelines) == expected


def test_phases_are_folded_apart(tmp_path: Path) -> None:
    batch = sample_batch()
    mixed = RecordBatch(batch.columns | {"phase": batch["n"] % 2}, batch.valid, batch.texts)
    metrics = everything()
    pipeline = Pipeline(metrics, tmp_path, "0")
    pipeline.feed(pipeline.score(mixed))
    for phase in (0, 1):
        (tmp_path / str(phase)).mkdir()
        assert results(metrics, [pipeline], phase) == reduced(tmp_path / str(phase), batch.select(batch["n"] % 2 == phase))


class Broken(Latency):
    """Fails from its third batch on."""

    tag, needs = "broken", ("latency",)

    def __init__(self) -> None:
        self.calls = 0

    def column(self, batch: RecordBatch) -> Column:
        self.calls += 1
        if self.calls > 2:
            raise ZeroDivisionError("nothing there")
        return batch["latency"]


class OnBroken(Broken):
    tag, needs = "on_broken", ("broken",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["broken"]


class TotalBroken(RunMetric):
    tag, title, unit, needs = "total_broken", "", Unit.NANOSECONDS, ("on_broken",)

    def number(self, run: Totals) -> float | None:
        return 1.0


def test_a_metric_that_raises_is_switched_off_with_all_its_dependents(tmp_path: Path) -> None:
    batch = sample_batch()
    metrics = listing(Latency(), Broken(), OnBroken(), TotalBroken())
    found = reduced(tmp_path, *(batch.select(batch["n"] % 4 == each) for each in range(4)), metrics=metrics)
    assert set(found) == {"latency"}
    assert found["latency"].stats["count"] == 18


def test_the_sentence_on_it_names_its_package_and_version(tmp_path: Path) -> None:
    broken = Broken()
    broken.calls = 2
    pipeline = Pipeline(listing(Latency(), broken), tmp_path, "0")
    pipeline.score(sample_batch())
    assert pipeline.off == {"broken": "metric broken of acme 1.2 is switched off: ZeroDivisionError: nothing there"}


def shaped(values: Any) -> Metric:
    class Shaped(Latency):
        tag = "shaped"

        def column(self, batch: RecordBatch) -> Column:
            column: Column = values
            return column

    return Shaped()


OFFSETS = np.array([0, *([1] * 24)])


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.ones(23), r"shape \(23,\) for 24 requests"),
        (np.ones((24, 2)), "shape"),
        (3.0, "shape"),
        ("many", "could not convert"),
        (ragged([[1.0]], [[1.0]]), "1 lists for 24 requests"),
        (Ragged(np.ones(2), OFFSETS, np.ones(2)), "offsets that don't cut"),
        (Ragged(np.ones(1), np.array([0, 3, 2, *([1] * 22)]), np.ones(1)), "offsets that don't cut"),
        (Ragged(np.ones(1), OFFSETS, np.ones(2)), "lists for"),
    ],
)
def test_a_column_of_another_shape_switches_its_metric_off(tmp_path: Path, values: Any, complaint: str) -> None:
    pipeline = Pipeline(listing(shaped(values), Valid()), tmp_path, "0")
    scored = pipeline.score(sample_batch())
    assert set(scored.values) == {"valid"}
    assert re.search(complaint, pipeline.off["shaped"])


def test_what_is_not_finite_is_absent(tmp_path: Path) -> None:
    values = np.full(24, np.inf)
    values[:3] = (1, 2, -np.inf)
    assert reduced(tmp_path, sample_batch(), metrics=listing(shaped(values)))["shaped"].stats["sum"] * 1e6 == pytest.approx(3)
    lists = ragged([[1.0, math.nan, 3.0], [math.inf], *([[]] * 22)], [[1.0, 2.0, 3.0], [4.0], *([[]] * 22)])
    column = Pipeline(listing(shaped(lists)), tmp_path, "0").score(sample_batch()).values["shaped"]
    assert isinstance(column, Ragged)
    assert (column.values.tolist(), column.at_ns.tolist(), column.offsets.tolist()) == ([1, 3], [1, 3], [0, 2, *([2] * 23)])


def test_a_metric_reads_what_it_says_it_needs_and_nothing_else(tmp_path: Path) -> None:
    class Nosy(Latency):
        tag = "nosy"

        def column(self, batch: RecordBatch) -> Column:
            return batch["latency"]

    pipeline = Pipeline(listing(Latency(), Nosy()), tmp_path, "0")
    pipeline.score(sample_batch())
    assert "'latency' is neither a column of the kernel nor in 'needs'" in pipeline.off["nosy"]


def test_a_metric_cannot_change_what_others_read(tmp_path: Path) -> None:
    class Careless(Rate):
        tag = "careless"

        def column(self, batch: RecordBatch) -> Column:
            values = batch["latency"]
            values /= 1e6
            return values

    pipeline = Pipeline(listing(Latency(), Careless()), tmp_path, "0")
    scored = pipeline.score(sample_batch())
    assert "read-only" in pipeline.off["careless"]
    alone = Pipeline(listing(Latency()), tmp_path, "1").score(sample_batch())
    assert_same(scored.values["latency"], alone.values["latency"], "beside a careless metric")


class Slow(PerRequestMetric):
    tag, title, unit, display = "slow", "Slow", Unit.NANOSECONDS, Unit.MILLISECONDS

    def value(self, request: RequestView) -> float | list[float] | None:
        last, started = request["last_token_ns"], request["started_ns"]
        return last - started if isinstance(last, float) and isinstance(started, float) else None


def test_the_ten_line_door_gives_what_the_vectorised_one_gives(tmp_path: Path) -> None:
    found = reduced(tmp_path, sample_batch(), metrics=listing(Slow(), Latency()))
    assert found["slow"].stats == found["latency"].stats


def test_a_hidden_metric_serves_others_and_is_in_no_file(tmp_path: Path) -> None:
    class Hidden(Latency):
        hidden = True

    assert set(reduced(tmp_path, sample_batch(), metrics=listing(Hidden(), Rate()))) == {"rate"}


@pytest.mark.parametrize("number", [math.nan, math.inf, None])
def test_a_number_that_is_none_is_absent(tmp_path: Path, number: float | None) -> None:
    class Nothing(Throughput):
        def number(self, run: Totals) -> float | None:
            return number

    assert set(reduced(tmp_path, sample_batch(), metrics=listing(Valid(), Nothing()))) == {"valid"}


def test_a_derived_metric_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    class Wrong(Throughput):
        def number(self, run: Totals) -> float | None:
            return "fast"  # type: ignore[return-value]

    metrics = listing(Valid(), Wrong())
    totals = PhaseTotals(metrics, {}, duration_s=1.0, window_s=1.0, valid=1, failed=0)
    assert totals.results() == {}
    assert totals.warnings == [
        "metric throughput of acme 1.2 is switched off: ValueError: could not convert string to float: 'fast'"
    ]


class Quicker(RunDistribution):
    """A latency less the number of its requests."""

    tag, title, unit, display = "quicker", "Quicker", Unit.NANOSECONDS, Unit.MILLISECONDS
    needs = reads = ("latency",)

    def values(self, run: Totals) -> Floats | None:
        values = run.values("latency")
        return None if values is None else np.maximum(values - run.count("latency"), 0.0)


def test_a_distribution_of_the_run_has_all_statistics(tmp_path: Path) -> None:
    batch = sample_batch()
    found = reduced(tmp_path, batch, metrics=listing(Latency(), Quicker()))
    plain, less = found["latency"].stats, found["quicker"].stats
    assert less.keys() == plain.keys() and less["count"] == plain["count"]
    taken = plain["count"] / 1e6
    assert all(less[name] == pytest.approx(plain[name] - taken, rel=1e-12) for name in ("avg", "min", "p50", "p99", "max"))
    assert less["std"] == pytest.approx(plain["std"], rel=1e-9)


class Sooner(RunDistribution):
    tag, title, unit, display = "sooner", "Sooner", Unit.NANOSECONDS, Unit.MILLISECONDS
    needs = reads = ("first",)

    def values(self, run: Totals) -> Floats | None:
        values = run.values("first")
        return None if values is None else np.maximum(values - 0.5e6, 0.0)


def test_a_distribution_of_the_run_has_the_bounds_of_what_it_reads(tmp_path: Path) -> None:
    batch = sample_batch()
    early = np.where(batch["first_token_ns"] > 0, batch["started_ns"] + 1e6, np.nan)
    bounded = RecordBatch({**batch.columns, "unreadable_ns": early}, batch.valid, batch.texts)
    found = reduced(tmp_path, bounded, metrics=listing(First(), Sooner()))
    first, sooner = found["first"], found["sooner"]
    assert sooner.lower.keys() == first.lower.keys() and first.lower["p50"] == 1.0
    for name in ("avg", "min", "p50", "max"):
        assert sooner.lower[name] == pytest.approx(first.lower[name] - 0.5)
        assert sooner.upper[name] == pytest.approx(first.upper[name] - 0.5)


def test_a_phase_of_which_nothing_is_known_has_no_results() -> None:
    assert PhaseTotals(everything(), {}, duration_s=None, window_s=None, valid=0, failed=0).results() == {}


def test_errors_are_counted_and_the_census_knows_when_each_was_first() -> None:
    batch = sample_batch()
    whole, left, right = PhaseCounts(), PhaseCounts(), PhaseCounts()
    whole.add(batch)
    right.add(batch.select(batch["n"] < 10))
    left.add(batch.select(batch["n"] >= 10))
    left.merge(right)
    assert whole == left
    ((text, (count, first_ns)),) = whole.errors.items()
    assert ("busy" in text, count) == (True, 6)
    assert first_ns == batch["ended_ns"][~batch.valid].min()
    assert whole.outcomes == {"completed": 18, "failed": 2, "cut": 2, "empty": 2}
    assert (whole.first_start_ns, whole.last_end_ns) == (batch["started_ns"].min(), np.nanmax(batch["ended_ns"]))
    assert (whole.reconnected, whole.closed_before_write, whole.unacknowledged) == (2, 1, 1)


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({}, Needs.STREAMING | Needs.CLIENT_TOKENS | Needs.ONE_ANSWER),
        ({"streaming": False}, Needs.CLIENT_TOKENS | Needs.ONE_ANSWER),
        ({"use_server_token_count": True}, Needs.STREAMING | Needs.ONE_ANSWER),
        ({"tokenizer": None}, Needs.STREAMING | Needs.ONE_ANSWER),
        ({"extra": {"n": 1}}, Needs.STREAMING | Needs.CLIENT_TOKENS | Needs.ONE_ANSWER),
        ({"extra": {"n": 2}}, Needs.STREAMING | Needs.CLIENT_TOKENS),
        ({"extra": {"sampling_params": {"n": 2}}}, Needs.STREAMING | Needs.CLIENT_TOKENS),
        ({"extra": {"sampling_params": 2, "parameters": {"n": "2"}}}, Needs.STREAMING | Needs.CLIENT_TOKENS | Needs.ONE_ANSWER),
        ({"extra": {"prompt": ["a", "b"]}}, Needs.STREAMING | Needs.CLIENT_TOKENS),
        ({"extra": {"prompt": [[1, 2], [3]]}}, Needs.STREAMING | Needs.CLIENT_TOKENS),
        ({"extra": {"prompt": [1, 2]}}, Needs.STREAMING | Needs.CLIENT_TOKENS | Needs.ONE_ANSWER),
        ({"several_answers": True}, Needs.STREAMING | Needs.CLIENT_TOKENS),
    ],
)
def test_what_a_run_has_decides_which_metrics_apply(tmp_path: Path, changes: dict[str, Any], extra: Needs) -> None:
    always = Needs.TOKENS_OUT | Needs.TOKENS_IN | Needs.LENGTHS
    assert needs_of(plan_for(tmp_path, **changes), Plain.capabilities) == always | extra


def test_metrics_that_cannot_be_had_are_named_with_package_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    (tmp_path / "quits_when_imported.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    values = {"gone": "aiperf_no_such:Gone", "odd": "aiperf_testing.journals:Words", "quits": "quits_when_imported:Metric"}
    refs = tuple(sample_ref("metrics", value, name=name) for name, value in values.items())
    warnings = catalogue(plan_for(tmp_path, metrics=refs), Plain).warnings
    assert warnings == [
        "the plugin metrics:gone of acme 1.2 can't be imported: No module named 'aiperf_no_such'; it is left out",
        "the plugin metrics:quits of acme 1.2 can't be imported: SystemExit: 3; it is left out",
        "metric odd of acme 1.2 is left out: TypeError: Words is neither a Metric nor a RunMetric",
    ]


class Percentile(RunMetric):
    tag, title, unit, needs = "p99", "P99", Unit.MILLISECONDS, ("latency",)

    def number(self, run: Totals) -> float | None:
        return run.statistic("latency", "p99")


def test_a_derived_metric_sees_statistics_as_they_are_shown(tmp_path: Path) -> None:
    found = reduced(tmp_path, sample_batch(), metrics=listing(Percentile(), Latency()))
    assert found["p99"].stats["avg"] == found["latency"].stats["p99"]


class Adjusted(Latency):
    adjusted = True


class Worst(Percentile):
    needs = ("latency",)

    def number(self, run: Totals) -> float | None:
        return run.statistic("adj_latency", "p50")


def test_a_derived_metric_sees_what_failures_do_to_a_percentile(tmp_path: Path) -> None:
    found = reduced(tmp_path, sample_batch(), metrics=listing(Worst(), Adjusted()))
    assert found["p99"].stats["avg"] == found["adj_latency"].stats["p50"] > found["latency"].stats["p50"]


# Families


class Limits(MetricFamily):
    """A limit on every metric of requests."""

    def metrics(
        self, plugin_options: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]
    ) -> Iterable[MetricDeclaration]:
        if "streamed" in unfit:
            raise ConfigError(f"streamed needs {unfit['streamed']}")
        return [Limit(other) for other in plugin_options.values() if isinstance(other, Metric)]


class Limit(Metric):
    title, unit = "Limit", Unit.RATIO

    def __init__(self, other: MetricDeclaration) -> None:
        self.tag, self.needs = f"limit_{other.tag}", (other.tag,)

    def column(self, batch: RecordBatch) -> Column:
        return (batch[self.needs[0]] > 5e6).astype(float)


class Streamed(Latency):
    tag, requires = "streamed", Needs.STREAMING


def family_plan(tmp_path: Path, *kinds: type[Any], **changes: Any) -> Any:

    refs = tuple(sample_ref("metrics", f"{__name__}:{kind.__name__}", name=kind.__name__) for kind in kinds)
    return plan_for(tmp_path, metrics=refs, **changes)


def test_a_family_gives_metrics_that_look_at_the_others(tmp_path: Path) -> None:
    found = catalogue(family_plan(tmp_path, Limits, Latency, Streamed), Plain)
    assert set(found.metrics) == {"latency", "streamed", "limit_latency", "limit_streamed"}
    assert found.owner("limit_latency") == "acme 1.2"
    assert found.warnings == []
    shares = reduced(tmp_path, sample_batch(), metrics=found)["limit_latency"].stats
    assert 0 < shares["avg"] <= 1


def test_a_family_that_cannot_be_what_its_options_say_refuses_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="streamed needs"):
        catalogue(family_plan(tmp_path, Limits, Streamed, streaming=False), Plain)


class Odd(MetricFamily):
    def metrics(
        self, plugin_options: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]
    ) -> Iterable[MetricDeclaration]:
        yield Latency()
        raise ValueError("no more")


def test_a_family_that_fails_is_left_out_whole(tmp_path: Path) -> None:
    found = catalogue(family_plan(tmp_path, Odd), Plain)
    assert (found.metrics, found.warnings) == ({}, ["metric Odd of acme 1.2 is left out: ValueError: no more"])


def test_experimental_metrics_are_asked_for_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIPERF_DEV_MODE", "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS"):
        assert not needs_of(plan_for(tmp_path), Plain.capabilities) & Needs.EXPERIMENTAL
        monkeypatch.setenv(name, "1")
        assert needs_of(plan_for(tmp_path), Plain.capabilities) & Needs.EXPERIMENTAL
        monkeypatch.delenv(name)


# Analyses


class Spread(Analysis):
    """How long requests took beside how much they said."""

    tag, title, needs, keeps, lists = "spread", "Spread", ("latency",), ("latency", "n"), ("chunk_ns",)

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        slowest = int(kept.column("n")[np.nanargmax(kept.column("latency"))])
        pieces = kept.lists("chunk_ns")
        count = -1 if pieces is None else len(pieces[1])
        for begin, end in windows:
            yield [
                Result("slowest", "Slowest", "count", {"avg": slowest}),
                Result("pieces", "Pieces", "count", {"avg": count, "max": end - begin}),
            ]


def analysed(tmp_path: Path, metrics: Catalogue, *parts: RecordBatch) -> Analyses:
    pipelines = [Pipeline(metrics, tmp_path, str(i)) for i in range(len(parts))]
    for pipeline, part in zip(pipelines, parts, strict=True):
        pipeline.feed(pipeline.score(part))
    return Analyses(metrics, [kept for pipeline in pipelines for kept in pipeline.dump_raw_values()], OutputPlan("", ""))


def test_an_analysis_sees_all_requests_whoever_reduced_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, metrics = sample_batch(), listing(Latency(), Spread())
    latency = Latency().column(batch)
    assert not isinstance(latency, Ragged)
    slowest = float(batch["n"][np.nanargmax(np.where(batch.valid, latency, np.nan))])
    pieces = len(batch.lists("chunk_ns").values)
    monkeypatch.setattr("aiperf.sdk.raw_values.HELD_ROWS", 5)
    for parts in ((batch,), (batch.select(batch["n"] % 2 == 0), batch.select(batch["n"] % 2 == 1))):
        whole, part = analysed(tmp_path, metrics, *parts).results(0, [(10.0, 30.0), (15.0, 20.0)])
        assert whole["slowest"].stats == {"avg": slowest}
        assert [found["pieces"].stats for found in (whole, part)] == [{"avg": pieces, "max": 20.0}, {"avg": pieces, "max": 5.0}]


@pytest.mark.parametrize("parts", [1, 2])
def test_lists_beyond_the_budget_are_kept_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    batch = sample_batch()
    monkeypatch.setattr("aiperf.sdk.raw_values.LISTED", len(batch.lists("chunk_ns").values) - 1)
    halves = [batch.take(rows) for rows in np.array_split(np.arange(len(batch)), parts)]
    (found,) = analysed(tmp_path, listing(Latency(), Spread()), *halves).results(0, [(0.0, 1.0)])
    assert found["pieces"].stats["avg"] == -1


def test_an_analysis_of_a_phase_that_had_no_requests_has_no_results(tmp_path: Path) -> None:
    assert analysed(tmp_path, listing(Latency(), Spread()), sample_batch()).results(1, [(0.0, 1.0)]) == [{}]


def test_an_analysis_that_fails_takes_no_number_with_it(tmp_path: Path) -> None:
    class Wrong(Spread):
        keeps = ("latency", "no_such_column")

    class Late(Spread):
        def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
            raise ValueError("too late")

    metrics = listing(Latency(), Wrong())
    pipeline = Pipeline(metrics, tmp_path, "0")
    pipeline.feed(pipeline.score(sample_batch()))
    assert "no_such_column" in pipeline.off["spread"]
    assert pipeline.dump_raw_values() == []
    late = analysed(tmp_path, listing(Latency(), Late()), sample_batch())
    assert late.results(0, [(0.0, 1.0), (1.0, 2.0)]) == [{}, {}]
    assert late.warnings == ["metric spread of acme 1.2 is switched off: ValueError: too late"]
