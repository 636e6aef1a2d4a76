"""Statistics of series weighted by time: arithmetic of gauges, counters and histograms over phases and slices."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from aiperf.parts.samples import SampleWriter, folds_path, read_samples, sample_path
from aiperf.sdk.series import Moment, SourceHeader, Window
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind
from aiperf.testing import SeriesContract
from aiperf_series_by_time import ByTime
from aiperf_series_by_time.levels import Levels
from aiperf_series_by_time.windows import Windows
from aiperf_testing.plans import sample_ref

S = 1_000_000_000


class TestItKeepsTheContract(SeriesContract):
    series = ByTime


def telemetry(journal: Path, windows: list[Window], slices: list[Window] | None = None) -> list[SourceSummary]:
    """The summary of the source."""
    path = sample_path(journal, 0)
    made = ByTime().summary(folds_path(path), lambda: read_samples(path), windows, slices or [])
    return [] if made is None else [made]


def folded(path: Path, windows: list[Window], samples: Sequence[tuple[float, list[Point]]]) -> SourceSummary:
    """The samples, at seconds, over the windows."""
    writer = SampleWriter(sample_path(path, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    for at_s, points in samples:
        writer.add(points, Moment(round(at_s * S), 0, 0, 0))
    writer.close()
    (found,) = telemetry(path, windows)
    return found


def over(begin_s: float, end_s: float, phase: int = 0) -> Window:
    return Window(phase, round(begin_s * S), round(end_s * S))


def only(found: SourceSummary) -> SeriesSummary:
    (series,) = found.series
    return series


@pytest.mark.parametrize(
    ("values", "window", "stats"),
    [
        # a straight line
        ([(0, 0), (10, 10)], (0, 10), {"avg": 5, "min": 0, "max": 10, "count": 2}),
        # by time, not by sample: nine seconds of one value, one of another
        ([(0, 4), (9, 4), (9.000001, 14), (10, 14)], (0, 10), {"avg": 5, "min": 4, "max": 14, "count": 4}),
        # what lies between samples at the edges
        ([(0, 0), (10, 10)], (2, 4), {"avg": 3, "min": 2, "max": 4, "count": 0}),
        # samples outside count for nothing but their line
        ([(0, 100), (2, 4), (8, 4), (9, 100)], (2, 8), {"avg": 4, "min": 4, "max": 4, "count": 2}),
        # a single sample
        ([(5, 7)], (0, 10), {"avg": 7, "min": 7, "max": 7, "std": 0, "count": 1}),
        # none at all
        ([(20, 7)], (0, 10), {}),
    ],
)
def test_gauges_are_weighted_by_time(
    tmp_path: Path, values: list[tuple[float, float]], window: tuple[float, float], stats: dict[str, float]
) -> None:
    found = folded(tmp_path, [over(*window)], [(at, [Point("g", value)]) for at, value in values])
    got = only(found).stats if found.series else {}
    assert {name: got[name] for name in stats} == pytest.approx(stats, rel=1e-5)
    assert bool(got) == bool(stats)


def test_the_deviation_of_a_gauge_is_that_of_its_line(tmp_path: Path) -> None:
    found = folded(tmp_path, [over(0, 10)], [(0, [Point("g", 0.0)]), (10, [Point("g", 12.0)])])
    assert only(found).stats["std"] == pytest.approx(12 / math.sqrt(12))


@pytest.mark.parametrize(
    ("values", "window", "stats"),
    [
        ([(0, 100), (10, 200)], (0, 10), {"total": 100, "rate": 10, "count": 2}),
        ([(0, 100), (10, 200)], (2, 4), {"total": 20, "rate": 10, "count": 0}),
        ([(-5, 0), (0, 50), (10, 80), (15, 1000)], (0, 10), {"total": 30, "rate": 3, "count": 2}),
        ([(0, 100), (5, 120), (10, 8)], (0, 10), {"total": 28, "rate": 2.8, "count": 3, "resets": 1}),
        ([(5, 100)], (0, 10), {}),
    ],
)
def test_counters_that_flow_grow_between_the_exact_edges_of_the_phase(
    tmp_path: Path, values: list[tuple[float, float]], window: tuple[float, float], stats: dict[str, float]
) -> None:
    points = [(at + 10, [Point("c", value, SeriesKind.COUNTER, flows=True)]) for at, value in values]
    found = folded(tmp_path, [over(window[0] + 10, window[1] + 10)], points)
    assert (only(found).stats if found.series else {}) == pytest.approx(stats)


@pytest.mark.parametrize(
    ("values", "first", "second"),
    [
        # from the last sample before the phase to the last one before the next
        ([(9, 5), (9.9, 7), (12, 9), (15.1, 17), (15.2, 18), (15.9, 18), (18, 60), (20.1, 118), (20.3, 119)],
         {"total": 11, "rate": 11 / 6, "count": 4}, {"total": 101, "rate": 101 / 4.4, "count": 3}),
        # no sample within a phase
        ([(9.5, 1), (15.5, 11), (20.5, 111)], {"total": 10, "rate": 10 / 6, "count": 1},
         {"total": 100, "rate": 20, "count": 1}),
        # none between the phases: the line between the two samples, without the time between the phases
        ([(9.5, 0), (13, 8), (19, 20), (21, 20)], {"total": 12.8, "rate": 12.8 / 5.9, "count": 1},
         {"total": 7.2, "rate": 7.2 / 5.6, "count": 2}),
        # the first sample comes late
        ([(12, 50), (15.1, 53), (20.1, 55)], {"total": 3, "rate": 3 / 3.1, "count": 2}, {"total": 2, "rate": 0.4, "count": 1}),
        # begun again within the phase, and between the phases
        ([(9, 50), (12, 52), (15.1, 3), (15.5, 1), (20.1, 3)], {"total": 6, "rate": 6 / 6.5, "count": 3, "resets": 2},
         {"total": 2, "rate": 2 / 4.6, "count": 1}),
        # seen behind the phase alone
        ([(15.1, 50), (15.2, 51), (20.1, 53)], {}, {"total": 2, "rate": 2 / 4.9, "count": 1}),
    ],
)
def test_counters_of_requests_are_counted_from_edge_to_edge(
    tmp_path: Path, values: list[tuple[float, float]], first: dict[str, float], second: dict[str, float]
) -> None:
    """Phases from 10 to 15 s and from 16 to 20 s."""
    points = [(at, [Point("c", value, SeriesKind.COUNTER)]) for at, value in values]
    found = folded(tmp_path, [over(10, 15, 0), over(16, 20, 1)], points)
    stats = {each.phase: each.stats for each in found.series}
    assert stats.get(0, {}) == pytest.approx(first) and stats.get(1, {}) == pytest.approx(second)


@pytest.mark.parametrize(
    ("values", "late", "unsettled"),
    [
        ([(9, 5), (15.1, 17), (15.2, 17), (20.1, 20), (20.2, 20)], {}, ()),
        ([(9, 5), (15.1, 17), (15.2, 18), (20.1, 20), (20.2, 21)], {}, (0, 1)),
        ([(9, 5), (15.1, 17), (15.2, 18), (15.9, 18), (20.1, 20)], {}, (1,)),
        ([(12.5, 5), (15.1, 17), (20.1, 20), (20.2, 20)], {0: 2.5}, ()),
    ],
)
def test_a_target_that_is_late_or_goes_on_counting_is_said(
    tmp_path: Path, values: list[tuple[float, float]], late: dict[int, float], unsettled: tuple[int, ...]
) -> None:
    points = [(at, [Point("c", value, SeriesKind.COUNTER)]) for at, value in values]
    (target,) = folded(tmp_path, [over(10, 15, 0), over(16, 20, 1)], points).targets
    assert (target.late, target.partial, target.unsettled) == (late, (), unsettled)


@pytest.mark.parametrize(
    ("seen", "failed", "partial"),
    [((9, 12, 15.1), (), ()), ((9, 12), (12.5, 14, 15.1), (0,)), ((9, 12, 14.9), (), (0,)), ((9, 12, 14.9), (15.1,), (0,))],
)
def test_a_phase_is_partial_whose_end_only_failed_samples_saw(
    tmp_path: Path, seen: tuple[float, ...], failed: tuple[float, ...], partial: tuple[int, ...]
) -> None:
    writer = SampleWriter(sample_path(tmp_path, 0), SourceHeader(sample_ref("telemetry", name="t"), 0.3))
    for at_s in seen:
        writer.add([Point("c", at_s, SeriesKind.COUNTER)], Moment(round(at_s * S), 0, 0, 0))
    for at_s in failed:
        writer.failed(round(at_s * S), 0, "refused")
    writer.close()
    (found,) = telemetry(sample_path(tmp_path, 0).parent, [over(10, 15)])
    assert found.targets[0].partial == found.partial == partial


def test_histograms_count_only_the_phase(tmp_path: Path) -> None:
    def seen(total: float, *counts: float) -> list[Point]:
        return [Point("h", Histogram((0.1, 1.0, math.inf), counts, total), SeriesKind.HISTOGRAM, "s")]

    last = seen(58.0, 5, 10, 14)
    samples = [(0, seen(50.0, 5, 8, 10)), (10, last), (10.5, last), (12, seen(90.0, 5, 10, 40))]
    found = folded(tmp_path, [over(0, 10), over(11, 12, 1)], samples)
    series, _ = found.series
    assert series.stats == pytest.approx({"count": 4, "sum": 8, "avg": 2, "rate": 4 / 10.5})
    assert series.buckets == {"0.1": 0, "1.0": 2, "+Inf": 4}
    assert (series.kind, series.unit) == ("histogram", "s")


def test_phases_and_labels_separate_series(tmp_path: Path) -> None:
    def both(left: float, right: float) -> list[Point]:
        return [Point("g", left, labels={"gpu": "0"}), Point("g", right, labels={"gpu": "1"})]

    samples = [(0, both(1, 2)), (10, both(1, 2)), (20, both(3, 4)), (30, both(3, 4))]
    found = folded(tmp_path, [over(0, 10, 0), over(20, 30, 1)], samples)
    assert [(each.labels["gpu"], each.phase, each.stats["avg"]) for each in found.series] == [
        ("0", 0, 1), ("0", 1, 3), ("1", 0, 2), ("1", 1, 4),
    ]  # fmt: skip
    assert (found.name, found.distribution, found.samples, found.failed, found.missed) == ("t", "acme", 4, 0, 0)


def test_gauges_have_percentiles_by_time(tmp_path: Path) -> None:
    values = [(0, 4), (9, 4), (9.000001, 14), (10, 14)]
    found = folded(tmp_path, [over(0, 10)], [(at, [Point("g", float(value))]) for at, value in values])
    stats = only(found).stats
    assert (stats["p50"], stats["p75"], stats["p95"], stats["p99"]) == (4, 4, 14, 14)


def test_percentiles_of_long_runs_are_within_half_a_percent_and_bounded(tmp_path: Path) -> None:
    samples = [(float(at), [Point("g", 1000.0 + at)]) for at in range(9001)]
    found = folded(tmp_path, [over(0, 9000)], samples)
    assert only(found).stats["p50"] == pytest.approx(5500, rel=0.005)


def test_what_is_held_of_a_gauge_is_bounded() -> None:
    levels, gauges = Levels([Windows([over(0, 6000)])]), np.arange(100)
    levels.grow(100)
    for at in range(6000):
        assert not [*levels.take(gauges, np.full(100, at * S), 1000.0 + at + gauges / 128)]
    assert len(pickle.dumps(levels)) < 12_000_000, "all values would take twice as much"
    ((_, finished),) = levels.close()
    assert [result.stats["count"] for result in finished.results] == [6000] * 100
    assert finished.results[0].stats["p50"] == pytest.approx(4000, rel=0.005)


def test_histograms_have_estimates_with_bounds(tmp_path: Path) -> None:
    def seen(total: float, *counts: float) -> list[Point]:
        return [Point("h", Histogram((0.1, 1.0, math.inf), counts, total), SeriesKind.HISTOGRAM, "s")]

    series = only(folded(tmp_path, [over(0, 10)], [(0, seen(50.0, 5, 8, 10)), (10, seen(55.5, 5, 18, 20))]))
    assert series.estimates["p50_estimate"] == pytest.approx(0.55)
    assert (series.estimates["p50_low"], series.estimates["p50_high"]) == (0.1, 1.0)
    assert series.entry()["stats"].keys() == series.stats.keys() | series.estimates.keys()


def test_an_info_is_its_labels(tmp_path: Path) -> None:
    point = Point("engine", 1, SeriesKind.INFO, labels={"version": "0.9"})
    series = only(folded(tmp_path, [over(0, 10)], [(0, [point]), (5, [point]), (10, [point])]))
    assert (series.kind, series.labels, series.stats) == ("info", {"version": "0.9"}, {"count": 3})


def test_a_digest_is_a_gauge_by_quantile_and_counters(tmp_path: Path) -> None:
    def seen(value: float, count: float) -> list[Point]:
        digest = Digest({0.5: value, 0.99: math.nan}, count, 2 * count)
        return [Point("wait", digest, SeriesKind.SUMMARY, "s", {"m": "x"})]

    found = folded(tmp_path, [over(0, 10)], [(0, seen(1.0, 5)), (10, seen(3.0, 25))])
    assert [(each.name, each.kind, each.unit, each.labels) for each in found.series] == [
        ("wait", "summary", "s", {"m": "x", "quantile": "0.5"}), ("wait_sum", "counter", "s", {"m": "x"}),
        ("wait_count", "counter", "", {"m": "x"}),
    ]  # fmt: skip
    assert [each.stats.get("avg", each.stats.get("total")) for each in found.series] == [2, 40, 20]


def test_values_may_have_times_of_their_own(tmp_path: Path) -> None:
    def seen(*values: tuple[float, float]) -> list[Point]:
        return [Point("g", value, at_ns=round((at_s + 100) * S)) for at_s, value in values]

    writer = SampleWriter(sample_path(tmp_path, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    writer.add(seen((0, 0), (2, 4)), Moment(3 * S, 103 * S, 0, 0))
    writer.add(seen((2, 9), (4, 0)), Moment(6 * S, 106 * S, 0, 0))  # the first is not later than the one before
    writer.close()
    (found,) = telemetry(tmp_path, [over(0, 4)])
    assert only(found).stats["avg"] == pytest.approx(2) and only(found).stats["max"] == 4
    assert only(found).stats["count"] == 3


def test_slices_add_up_to_their_phase(tmp_path: Path) -> None:
    writer = SampleWriter(sample_path(tmp_path, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    for at_s in (-1, 1, 3, 9, 11):
        points = [Point("c", 10.0 * at_s + 20, SeriesKind.COUNTER), Point("g", float(at_s))]
        writer.add(points, Moment(round((at_s + 10) * S), 0, 0, 0))
    writer.close()
    slices = [over(10, 14, 1), over(14, 18, 1), over(18, 20, 1)]
    (found,) = telemetry(tmp_path, [over(0, 9, 0), over(10, 20, 1)], slices)
    growth, level = zip(*found.slices, strict=True)
    assert [each.stats["total"] for each in growth] == pytest.approx([50, 40, 30])
    assert [each.stats["avg"] for each in level] == pytest.approx([2, 6, 9])
    assert [each.stats["count"] for each in level] == [2, 0, 1]
    assert {each.phase for each in (*growth, *level)} == {1}
    assert sum(each.stats["total"] for each in found.series if each.name == "c" and each.phase == 1) == pytest.approx(120)


def test_too_many_slices_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("aiperf_series_by_time.folds.MOST_PARTS", 3)
    writer = SampleWriter(sample_path(tmp_path, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    for at_s in (0, 10):
        writer.add([Point("a", 1.0), Point("b", 1.0)], Moment(at_s * S, 0, 0, 0))
    writer.close()
    (found,) = telemetry(tmp_path, [over(0, 10)], [over(0, 5), over(5, 10)])
    assert [[each.name for each in series] for series in found.slices] == [["a"], ["a"]]
    assert len(found.series) == 2 and "time slices have the first 1 of 2 series" in caplog.text
