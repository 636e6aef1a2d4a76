"""Trees that ended, failed, were cut, or were begun before the phase, from columns made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from aiperf import Column, RawValues, RecordBatch, Result, Totals
from aiperf.sdk.raw_values import RawValueCollector
from aiperf.sdk.trees import Branch, Pause, PlannedTree, Stream, TreeBuilder
from aiperf.testing import AnalysisContract, MetricContract, check_row, sample_batch
from aiperf_metric_trees import InteractivityP75, InteractivityP90, LatencyPerToken, StartLag, TreeMetrics, gathering

_MS = 1e6
GOOD, FAILED, ABORTED, OVERFLOWED = 0.0, 1.0, 3.0, 8.0


def planned(*, fork: bool = False) -> PlannedTree:
    """A root of three turns that starts two children behind its first one, and waits for them with its second."""
    builder = TreeBuilder()
    root = builder.stream("r", 3)
    children = tuple(builder.stream(name, 2) for name in "xy")
    builder.branch(root, Branch(children, after=0, joins=1, forks=fork))
    return PlannedTree(builder.streams(), (0, 5_000_000, 0, 0, 0, 0, 0))


WHOLE = ((0, 0, 0, 10), (1, 0, 10, 20), (2, 0, 10, 30), (1, 1, 20, 40), (2, 1, 30, 35), (0, 1, 40, 50), (0, 2, 50, 60))
"""Stream, turn, start and end in ms of every request of such a tree."""


def results(
    tmp_path: Path, requests: Any, plan: PlannedTree | None = None, window_ms: tuple[float, float] = (0, 3600_000),
    **more: list[float],
) -> dict[str, Result]:  # fmt: skip
    """Rows as in WHOLE, an outcome behind them where a request isn't good; *more*: other columns."""
    count = len(requests)
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in TreeMetrics.keeps}
    for name, place in (("stream", 0), ("turn", 1), ("started_ns", 2), ("ended_ns", 3)):
        columns[name] = np.array([row[place] for row in requests], dtype=float) * (_MS if place > 1 else 1)
    columns["outcome"] = np.array([row[4] if len(row) > 4 else GOOD for row in requests])
    columns |= {"session": np.zeros(count), "entry": np.zeros(count)}
    columns |= {name: np.array(values) for name, values in more.items()}
    keeper = RawValueCollector(tmp_path / "kept", TreeMetrics.keeps, ())
    keeper.add(RecordBatch(columns, columns["outcome"] == GOOD), {})
    kept = RawValues([keeper.dump()], (), lambda entry: plan or planned())
    (found,) = TreeMetrics().results(kept, [(window_ms[0] * _MS, window_ms[1] * _MS)])
    return {result.tag: result for result in found}


def worked(tmp_path: Path) -> dict[str, Result]:
    return results(tmp_path, WHOLE)


def test_a_tree_takes_from_its_first_start_to_its_last_end(tmp_path: Path) -> None:
    found = worked(tmp_path)
    assert found["tree_duration"].stats["avg"] == pytest.approx(0.060)
    # 0–10 root, 10–20 and 20–40 of x, 40–50 and 50–60 of the root
    assert found["tree_critical_path"].stats["avg"] == pytest.approx(0.060)
    assert found["tree_critical_path_share"].stats["avg"] == pytest.approx(100)
    assert {tag: found[tag].stats["max"] for tag in ("tree_requests", "tree_depth", "tree_width")} == {
        "tree_requests": 7, "tree_depth": 1, "tree_width": 2,
    }  # fmt: skip
    assert found["tree_outcomes"].counts == {"ended": 1}
    assert found["trees_per_hour"].stats == {"avg": 1.0}


def test_a_join_waits_beyond_the_think_time(tmp_path: Path) -> None:
    found = worked(tmp_path)["tree_join_wait"]
    assert (found.unit, found.stats["max"], found.stats["count"]) == ("ms", pytest.approx(25), 1)  # 40 - 10 - 5


def test_the_slowest_sibling_is_compared_with_the_median(tmp_path: Path) -> None:
    assert worked(tmp_path)["tree_sibling_spread"].stats["avg"] == pytest.approx(30 / 27.5)


def test_a_pause_that_a_limit_makes_is_not_on_the_critical_path(tmp_path: Path) -> None:
    late = (*WHOLE[:-1], (0, 2, 90, 100))
    found = results(tmp_path, late)
    assert found["tree_critical_path"].stats["avg"] == pytest.approx(0.060)
    assert found["tree_critical_path_share"].stats["avg"] == pytest.approx(60)


def test_planned_times_are_on_the_critical_path_with_tools(tmp_path: Path) -> None:
    plan = PlannedTree(planned().streams, (0, 0, int(30 * _MS), 0, 0, 0, 0))
    found = results(tmp_path, (*WHOLE[:-1], (0, 2, 90, 100)), plan)
    assert found["tree_critical_path_share"].stats["avg"] == pytest.approx(90)


@pytest.mark.parametrize(("start_ms", "begin", "path"), [
    (2.0, 3, 0.027),  # 3-20 of the child and 20-30 of the root: the root's first turn is no part of it
    (2.0, 10, 0.030), (None, 10, 0.030), (2.0, 9.9, 0.0301),
])  # fmt: skip
def test_a_child_beside_a_turn_is_not_behind_it(tmp_path: Path, start_ms: float | None, begin: float, path: float) -> None:
    builder = TreeBuilder()
    builder.stream("r", 2)
    builder.branch(0, Branch((builder.stream("x", 1),), after=0, joins=1, start_ms=start_ms))
    found = results(tmp_path, ((0, 0, 0, 10), (1, 0, begin, 20), (0, 1, 20, 30)), PlannedTree(builder.streams(), (0, 0, 0)))
    assert found["tree_critical_path"].stats["avg"] == pytest.approx(path)


@pytest.mark.parametrize(("requests", "outcome"), [
    (WHOLE, "ended"),
    (WHOLE[:-1], "cut"),  # the last turn was not sent
    ((*WHOLE[:-1], (0, 2, 50, 55, ABORTED)), "cut"),
    ((*WHOLE[:3], (1, 1, 20, 40, FAILED), *WHOLE[4:]), "failed"),
    (((0, 0, 0, 10), (1, 0, 10, 20, FAILED), (2, 0, 10, 30), (2, 1, 30, 35), (0, 1, 35, 50), (0, 2, 50, 60)), "failed"),
    (((0, 0, 0, 10), (1, 0, 10, 20, OVERFLOWED), *WHOLE[2:3], *WHOLE[4:]), "failed"),
    (((0, 0, 0, 10), (1, 0, 10, 20), (1, 1, 20, 40)), "cut"),  # y never began
    (((0, 1, 40, 50), (0, 2, 50, 60)), "resumed"),
    (((1, 1, 20, 40), (2, 1, 30, 35), (0, 1, 40, 50), (0, 2, 50, 60)), "resumed"),
    (((1, 0, 10, 20), (1, 1, 20, 40)), "resumed"),  # the root was over before
    (((0, 1, 40, 50),), "cut"),
])  # fmt: skip
def test_how_a_tree_came_out(tmp_path: Path, requests: Any, outcome: str) -> None:
    found = results(tmp_path, requests)
    assert found["tree_outcomes"].counts == {outcome: 1}
    assert ("tree_duration" in found) is (outcome == "ended")
    assert found["trees_per_hour"].stats["avg"] == (outcome in ("ended", "resumed"))


def test_a_failure_that_ends_the_tree_early_is_no_cut(tmp_path: Path) -> None:
    """Another tree goes on when the parent would have gone on."""
    rows = [(0, 0, 0, 10), (1, 0, 10, 20, FAILED), (2, 0, 10, 30), (2, 1, 30, 35)]
    found = results(tmp_path, [*rows, (0, 0, 100, 110)], session=[0, 0, 0, 0, 1])
    assert found["tree_outcomes"].counts == {"failed": 1, "cut": 1}
    stats = found["branch_stats"].counts
    assert (stats["parents_suspended"], stats["parents_resumed"], stats["parents_failed_due_to_child_error"]) == (2, 0, 1)
    assert (stats["children_errored"], stats["children_completed"], stats["joins_suppressed"]) == (1, 1, 1)


def test_a_join_whose_turn_never_left_was_suppressed(tmp_path: Path) -> None:
    stats = results(tmp_path, WHOLE[:5])["branch_stats"].counts
    assert (stats["children_spawned"], stats["children_completed"], stats["children_truncated"]) == (2, 2, 0)
    assert (stats["parents_suspended"], stats["parents_resumed"], stats["joins_suppressed"]) == (1, 0, 1)


def test_a_child_without_its_last_turn_was_truncated(tmp_path: Path) -> None:
    stats = results(tmp_path, WHOLE[:4])["branch_stats"].counts
    assert (stats["children_completed"], stats["children_truncated"], stats["joins_suppressed"]) == (1, 1, 1)


def test_a_graph_without_requests_of_its_own_is_counted(tmp_path: Path) -> None:
    builder = TreeBuilder()
    root = builder.stream("o", 0)
    first, second = builder.stream("w", 1), builder.stream("w", 1)
    builder.branch(root, Branch((first,)))
    builder.branch(root, Branch((second,), behind=(0,), pause=Pause(20)))
    plan = PlannedTree(builder.streams(), (0, 0))
    found = results(tmp_path, ((1, 0, 0, 10), (2, 0, 40, 50)), plan)
    stats = found["branch_stats"].counts
    assert (stats["graphs_admitted"], stats["graphs_completed_to_end"], stats["children_delayed"]) == (1, 1, 1)
    assert found["tree_critical_path"].stats["avg"] == pytest.approx(0.020)
    assert found["tree_critical_path_share"].stats["avg"] == pytest.approx(80)  # 10 + 20 + 10 of 50
    assert results(tmp_path / "..", ((1, 0, 0, 10),), plan)["branch_stats"].counts["graphs_completed_to_end"] == 0


def test_prefixes_are_as_old_as_the_last_request_that_had_them(tmp_path: Path) -> None:
    s = 1000
    rows = (
        (0, 0, 0, 1 * s), (1, 0, 2 * s, 3 * s), (2, 0, 2.5 * s, 3 * s), (1, 1, 20 * s, 21 * s), (2, 1, 400 * s, 401 * s),
        (0, 1, 5000 * s, 5001 * s), (0, 2, 5001.5 * s, 5002 * s),
    )  # fmt: skip
    firsts = [row[2] * _MS + 7 * _MS for row in rows]
    found = results(tmp_path, rows, planned(fork=True), (0, 1e7), first_token_ns=firsts)
    # y has x's fork 0.5 s before it; the root's second turn has that of y's second one 4,600 s before it
    ages = {"first": 1, "1s_to_10s": 2, "10s_to_1m": 1, "5m_to_1h": 1, "over_1h": 1, "under_1s": 1}
    assert {age: found[f"tree_ttft_prefix_{age}"].stats["count"] for age in ages} == ages
    assert found["tree_ttft_prefix_over_1h"].stats["avg"] == pytest.approx(7)


def test_hits_observed_stand_beside_theoretical_ones(tmp_path: Path) -> None:
    prompt, cached = [100.0, *[50.0] * 6], [0.0, 50.0, 50.0, *[np.nan] * 4]
    found = results(
        tmp_path, WHOLE, usage_prompt_tokens=prompt, usage_cached_tokens=cached, prefix_blocks=[4.0] * 7, prefix_hits=[3.0] * 7
    )
    hits = {name: found[f"tree_prefix_hit_{name}"].stats["avg"] for name in ("observed", "theoretical", "lost")}
    assert hits == {"observed": 50.0, "theoretical": 75.0, "lost": 25.0}


def test_parts_of_the_sessions_at_a_time_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(stream, turn, start + 100 * n, end + 100 * n) for n in range(40) for stream, turn, start, end in WHOLE]
    numbers = [float(n) for n in range(40) for _ in WHOLE]
    (tmp_path / "all").mkdir()
    whole = results(tmp_path / "all", rows, session=numbers)
    monkeypatch.setattr(gathering, "REQUESTS", 20)
    monkeypatch.setattr(gathering, "_BLOCK", 16)
    assert results(tmp_path, rows, session=numbers) == whole
    assert whole["tree_outcomes"].counts == {"ended": 40}


def test_a_tree_whose_plan_is_unknown_is_left_out(tmp_path: Path) -> None:
    assert results(tmp_path, WHOLE, PlannedTree((Stream("r", 0, 3),))) == {}


class TestTreesKeepTheContract(AnalysisContract):
    metric = TreeMetrics()

    def batch(self) -> RecordBatch:
        batch = sample_batch()
        rows = batch["n"]
        columns = batch.columns | {"stream": rows % 2, "depth": rows % 2, "parent": -(rows % 2), "turn": 0 * rows}
        return RecordBatch(columns, batch.valid, batch.texts)

    def tree(self, entry: int) -> PlannedTree:
        builder = TreeBuilder()
        root, child = builder.stream("r", 1), builder.stream("x", 1)
        builder.branch(root, Branch((child,), after=0))
        return PlannedTree(builder.streams(), (0, 0))


class TestStartLagKeepsTheContract(MetricContract):
    metric = StartLag()

    def batch(self) -> RecordBatch:
        batch = sample_batch()
        return RecordBatch(batch.columns | {"stream": 0 * batch["n"]}, batch.valid, batch.texts)


@pytest.mark.parametrize("kind", [TreeMetrics, LatencyPerToken, InteractivityP75, InteractivityP90, StartLag])
def test_the_manifest_says_what_the_class_says(kind: type) -> None:
    check_row("metrics", kind)


def test_a_latency_without_tokens_or_prompt_counts_nowhere() -> None:
    columns = {
        "request_latency": np.array([2e9, 2e9, 2e9, 0.0]), "output_sequence_length": np.array([4.0, 0.0, 4.0, 4.0]),
        "first_token_ns": np.array([np.nan, 1.0, 1.0, 1.0]), "started_ns": np.zeros(4),
        "input_tokens": np.array([np.nan, 1, 0, 1]),
    }  # fmt: skip
    found = LatencyPerToken().column(RecordBatch(columns, np.ones(4, bool)))
    assert np.array_equal(found, [0.5, np.nan, np.nan, np.nan], equal_nan=True)


class _PerToken:
    """Totals of a run whose slow tail takes 0.5 s a token at p75, and 0.8 s at p90."""

    def statistic(self, tag: str, name: str) -> float | None:
        return {"p75": 0.5, "p90": 0.8}.get(name) if tag == "latency_per_token" else None


WORKED = {
    "latency_per_token": 0.25,  # 2 s, 8 tokens
    "start_lag": 3 * _MS,
    "e2e_normalized_interactivity_p75": 2.0,
    "e2e_normalized_interactivity_p90": 1.25,
}


def test_each_metric_has_its_value() -> None:
    columns: dict[str, Column] = {name: np.array([value]) for name, value in {
        "request_latency": 2e9, "output_sequence_length": 8.0, "first_token_ns": 1.0, "started_ns": 0.0, "input_tokens": 4.0,
        "stream": 0.0, "due_ns": 2 * _MS, "sent_ns": 5 * _MS,
    }.items()}  # fmt: skip
    batch, totals = RecordBatch(columns, np.ones(1, bool)), cast("Totals", _PerToken())
    found = {kind.tag: kind().column(batch)[0] for kind in (LatencyPerToken, StartLag)}
    found |= {kind.tag: kind().number(totals) for kind in (InteractivityP75, InteractivityP90)}
    assert found == WORKED
