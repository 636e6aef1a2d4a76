"""Telemetry: samples are on disk at once and in the summary by phase; no source harms a run."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.errors import AiperfError
from aiperf.reduce.reducer import Reducer
from aiperf.report.report import write_summary
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.hooks import hookimpl
from aiperf.sdk.options import EncodedOptions, Options
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.summary import SeriesSummary, SourceSummary, Summary
from aiperf.sdk.telemetry import (
    Absent,
    Digest,
    Histogram,
    Point,
    SeriesDeclaration,
    SeriesKind,
    SeriesTable,
    TelemetryContext,
    TelemetrySource,
)
from aiperf.telemetry.levels import Levels
from aiperf.telemetry.process import BEGIN, END, Edge, Reply, SourceProcess, Sources, SourceStart, SourceTrouble
from aiperf.telemetry.samples import (
    FailedSample,
    Moment,
    Sample,
    SampleWriter,
    SeriesHeader,
    SourceHeader,
    read_samples,
    sample_path,
)
from aiperf.telemetry.summaries import telemetry
from aiperf.telemetry.windows import Window, Windows
from aiperf.testing.journals import CLOCK, Recording, event, plan_for
from aiperf.testing.plans import sample_ref

S = 1_000_000_000
SEEN: list[Any] = []


class Weather(Options):
    start: str = ""
    fails: int = 0
    stop: bool = False


class Thermometer(TelemetrySource[Weather | None]):
    """Counts its samples; *options* may make it fail."""

    interval_s = 1.0

    def start(self) -> None:
        self.taken = 0
        if self.options is not None and self.options.start == "absent":
            raise Absent("there is no sun")
        if self.options is not None and self.options.start == "refused":
            raise AiperfError("the sun is out of reach", "try again in the morning")

    def sample(self) -> list[Point]:
        self.taken += 1
        if self.options is not None and self.options.fails == self.taken:
            raise ConnectionError("a cloud")
        if self.options is not None and self.options.fails == -self.taken:
            return [20.5]  # type: ignore[list-item]
        return [
            Point("temperature", 20.0 + self.taken, unit="°C", labels={"where": "roof"}),
            Point("temperature", math.nan, unit="°C", labels={"where": "cellar"}),
            Point("rain", 10.0 * self.taken, SeriesKind.COUNTER, "mm"),
        ]

    def stop(self) -> None:
        if self.options is not None and self.options.stop:
            raise ZeroDivisionError("stuck")


class Listener:
    @hookimpl
    def aiperf_samples_arrived(self, source: str, points: Any, moment: Moment) -> None:
        SEEN.append((source, len(points), moment.edge))


class Deaf:
    @hookimpl
    def aiperf_samples_arrived(self, source: str) -> None:
        raise KeyError(source)


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


class Bench:
    """A source's process within the test, with a manual clock."""

    def __init__(self, path: Path, *, hooks: tuple[PluginRef, ...] = (), **options: Any) -> None:
        self.now_ns = 0
        self.said: list[Reply] = []
        self.path = path
        self.process = SourceProcess(self.said.append, lambda: (self.now_ns, self.now_ns + 7 * S))
        given = EncodedOptions.of(Weather(**options)) if options else None
        listening = tuple((each, None) for each in hooks)
        self.tell(SourceStart(ref("telemetry", Thermometer), given, TelemetryContext(), str(path), listening))

    def tell(self, message: Any) -> None:
        self.process.take(msgspec.json.encode(message))

    def until(self, second: float) -> None:
        """Advance the clock with a tick at each due time."""
        while (rest := self.process.rest_s()) is not None and self.now_ns + round(rest * S) <= second * S:
            self.now_ns += round(rest * S)
            self.process.tick()
        self.now_ns = round(second * S)

    def moments(self) -> list[tuple[float, str | None, int]]:
        found = [line.moment for line in read_samples(self.path) if isinstance(line, Sample)]
        return [(each.at_ns / S, each.edge, each.missed) for each in found]


def test_samples_come_at_phase_edges_and_at_the_interval(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.until(5)
    assert bench.moments() == [], "no sample is due before a phase"
    for phase, begin, end in ((0, 5, 7.5), (1, 8, 9)):
        bench.until(begin)
        bench.tell(Edge(phase, BEGIN))
        bench.until(end)
        bench.tell(Edge(phase, END))
    bench.until(20)
    bench.process.close()
    assert bench.moments() == [
        (5, "begin", 0), (6, None, 0), (7, None, 0), (7.5, "end", 0), (8, "begin", 0), (9, None, 0), (9, "end", 0),
    ]  # fmt: skip
    assert bench.said == [Edge(0, BEGIN), Edge(0, END), Edge(1, BEGIN), Edge(1, END)]


def test_missed_samples_are_counted_and_the_interval_keeps_its_phase(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.now_ns = round(3.2 * S)  # a sample took so long
    bench.process.tick()
    bench.until(4)
    assert bench.moments() == [(0, "begin", 0), (3.2, None, 2), (4, None, 0)]


def test_a_file_can_be_read_to_its_last_whole_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    with bench.path.open("ab") as file:
        file.write(b'{"type":"sample","mom')
    origin, roof, rain, sample = read_samples(bench.path)
    assert isinstance(origin, SourceHeader) and (origin.ref.name, origin.interval_s) == ("thermometer", 1.0)
    assert isinstance(roof, SeriesHeader) and (roof.name, roof.labels, roof.unit) == ("temperature", {"where": "roof"}, "°C")
    assert isinstance(rain, SeriesHeader) and rain.kind is SeriesKind.COUNTER
    assert isinstance(sample, Sample) and sample.values == {0: 21.0, 1: 10.0}, "a value that is no number is left out"
    assert sample.moment.wall_ns == 7 * S


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": "absent"}, SourceTrouble("the plugin telemetry:thermometer of acme 1.2: there is no sun", absent=True)),
        (
            {"start": "refused"},
            SourceTrouble(
                "the plugin telemetry:thermometer of acme 1.2 can't be started: the sun is out of reach;"
                " try again in the morning"
            ),
        ),
    ],
)
def test_a_source_that_fails_to_start_is_reported_without_delay(
    tmp_path: Path, options: dict[str, Any], said: SourceTrouble
) -> None:
    bench = Bench(tmp_path / "samples", **options)
    bench.tell(Edge(0, BEGIN))
    bench.until(3)
    bench.process.close()
    assert bench.said == [said, Edge(0, BEGIN)]
    assert not bench.path.exists()


@pytest.mark.parametrize(("fails", "why"), [(2, "ConnectionError: a cloud"), (-2, "TypeError: it gives float, not Point")])
def test_a_failing_sample_is_reported_and_the_next_is_taken(tmp_path: Path, fails: int, why: str) -> None:
    bench = Bench(tmp_path / "samples", fails=fails, stop=True)
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    bench.process.close()
    assert [at for at, *_ in bench.moments()] == [0, 2]
    assert [line.why for line in read_samples(bench.path) if isinstance(line, FailedSample)] == [why]
    who = "the plugin telemetry:thermometer of acme 1.2"
    assert bench.said == [
        Edge(0, BEGIN),
        SourceTrouble(f"{who} failed: {why}"),
        SourceTrouble(f"{who} failed at its end: ZeroDivisionError: stuck"),
    ]


def test_hooks_see_every_sample_and_a_failing_hook_harms_nothing(tmp_path: Path) -> None:
    SEEN.clear()
    bench = Bench(tmp_path / "samples", hooks=(ref("hooks", Listener), ref("hooks", Deaf)))
    bench.tell(Edge(0, BEGIN))
    bench.until(1)
    assert SEEN == [("thermometer", 3, "begin"), ("thermometer", 3, None)]
    (trouble,) = [said for said in bench.said if isinstance(said, SourceTrouble)]
    assert trouble.message == "the plugin hooks:deaf of acme 1.2 failed in aiperf_samples_arrived: KeyError: 'thermometer'"
    assert len(bench.moments()) == 2


def test_a_full_disk_ends_only_the_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path / "samples")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SampleWriter, "write", full)
    bench.tell(Edge(0, BEGIN))
    bench.until(5)
    bench.tell(Edge(0, END))
    assert [type(said).__name__ for said in bench.said] == ["SourceTrouble", "Edge", "Edge"]
    assert "its samples can't be written: No space left on device" in str(bench.said[0])


# Tables of series

TABLE = SeriesTable(
    SeriesDeclaration("power", "W", labels=("gpu", "host"), help="Draw"), SeriesDeclaration("jobs", kind=SeriesKind.COUNTER)
)


def test_a_table_makes_points_of_its_series() -> None:
    assert TABLE.point("power", 5.0, "0", "a", at_ns=7) == Point("power", 5.0, SeriesKind.GAUGE, "W", {"gpu": "0", "host": "a"},
                                                                "Draw", 7)  # fmt: skip
    assert TABLE.point("jobs", 3).kind is SeriesKind.COUNTER


@pytest.mark.parametrize(
    ("name", "labels", "why"), [("power", ("0",), "has 2 labels, not 1"), ("heat", (), "the series heat is not in the table")]
)
def test_a_table_refuses_other_series_and_labels(name: str, labels: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TABLE.point(name, 1.0, *labels)


@pytest.mark.parametrize(
    "changed",
    [
        Point("x", 1.0, SeriesKind.COUNTER, "W", {"gpu": "0"}),
        Point("x", 1.0, unit="mW", labels={"gpu": "0"}),
        Point("x", 1.0, unit="W", labels={"gpu": "0", "mig": "1"}),
        Point("x", Histogram((1.0, math.inf), (1, 2), 3.0), SeriesKind.HISTOGRAM, "W", {"gpu": "0"}),
    ],
)
def test_a_series_that_changes_is_named_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: Point
) -> None:
    same = [Point("x", 1.0, unit="W", labels={"gpu": gpu}) for gpu in ("0", "1")]
    given = iter([same, [changed, *same], [Point("y", 1.0)], [changed]])
    monkeypatch.setattr(Thermometer, "sample", lambda self: next(given))
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.until(3)
    assert bench.said == [
        Edge(0, BEGIN),
        SourceTrouble(
            "the plugin telemetry:thermometer of acme 1.2 changes the kind, unit, labels or buckets of x,"
            " which goes on as another series"
        ),
    ]
    assert [len(line.values) for line in read_samples(bench.path) if isinstance(line, Sample)] == [2, 3, 1, 1]


def test_one_source_has_a_bounded_number_of_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf.telemetry.samples.MOST_SERIES", 3)
    monkeypatch.setattr(Thermometer, "sample", lambda self: [Point("p", 1.0, labels={"pid": str(pid)}) for pid in range(9)])
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    (trouble,) = (said for said in bench.said if isinstance(said, SourceTrouble))
    assert trouble.message.endswith("has more than 3 series; further ones are left out")
    assert [len(line.values) for line in read_samples(bench.path) if isinstance(line, Sample)] == [3, 3, 3]


# Folding


def folded(path: Path, windows: list[Window], samples: list[tuple[float, list[Point]]]) -> SourceSummary:
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
def test_counters_grow_between_the_exact_edges_of_the_phase(
    tmp_path: Path, values: list[tuple[float, float]], window: tuple[float, float], stats: dict[str, float]
) -> None:
    points = [(at + 10, [Point("c", value, SeriesKind.COUNTER)]) for at, value in values]
    found = folded(tmp_path, [over(window[0] + 10, window[1] + 10)], points)
    assert (only(found).stats if found.series else {}) == pytest.approx(stats)


def test_histograms_count_only_the_phase(tmp_path: Path) -> None:
    def seen(total: float, *counts: float) -> list[Point]:
        return [Point("h", Histogram((0.1, 1.0, math.inf), counts, total), SeriesKind.HISTOGRAM, "s")]

    found = folded(tmp_path, [over(0, 10)], [(0, seen(50.0, 5, 8, 10)), (10, seen(58.0, 5, 10, 14))])
    series = only(found)
    assert series.stats == {"count": 4, "sum": 8, "avg": 2, "rate": 0.4}
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
    assert [each.stats["total"] for each in growth] == pytest.approx([40, 40, 20])
    assert [each.stats["avg"] for each in level] == pytest.approx([2, 6, 9])
    assert [each.stats["count"] for each in level] == [2, 0, 1]
    assert {each.phase for each in (*growth, *level)} == {1}
    assert sum(each.stats["total"] for each in found.series if each.name == "c" and each.phase == 1) == pytest.approx(100)


def test_too_many_slices_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("aiperf.telemetry.folds.MOST_PARTS", 3)
    writer = SampleWriter(sample_path(tmp_path, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    for at_s in (0, 10):
        writer.add([Point("a", 1.0), Point("b", 1.0)], Moment(at_s * S, 0, 0, 0))
    writer.close()
    (found,) = telemetry(tmp_path, [over(0, 10)], [over(0, 5), over(5, 10)])
    assert [[each.name for each in series] for series in found.slices] == [["a"], ["a"]]
    assert len(found.series) == 2 and "time slices have the first 1 of 2 series" in caplog.text


def test_the_summary_has_the_samples_of_its_phases(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    made.phase("begin", 0)
    made.answered(0, 1000, (2 * S, event(text="a")))
    made.flush(3 * S)
    made.phase("end", 4 * S)
    zero = CLOCK.started_mono_ns / S
    folded(made.journal, [], [(zero - 1, [Point("g", 5.0)]), (zero + 5, [Point("g", 5.0)])])
    Reducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    assert [only(source).stats["avg"] for source in summary.telemetry] == [5.0]


# The run's side


FAKES = '''
import os
import time

from aiperf import Point, TelemetrySource


class Steady(TelemetrySource):
    def sample(self):
        return [Point("urls", len(self.context.urls)), Point("secret", "hunter2" in str(self.context.urls))]


class Knows(TelemetrySource):
    def sample(self):
        tls, headers = self.context.tls, self.context.headers
        return [Point("trusts", tls.ca_file == "ca.pem"), Point("key", headers == {"Authorization": "Bearer hunter2"})]


class Dies(TelemetrySource):
    def sample(self):
        os._exit(9)


class Hangs(TelemetrySource):
    def sample(self):
        time.sleep(600)
'''


def test_a_dying_or_hanging_source_costs_only_its_own_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake_sources.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for patience in ("_START_S", "_EDGE_S", "_END_S"):  # of sources that answer, or die: a busy machine may take its time
        monkeypatch.setattr(f"aiperf.telemetry.process.{patience}", 60.0)
    named = [sample_ref("telemetry", f"fake_sources:{name}") for name in ("Steady", "Dies", "Hangs")]
    plan = plan_for(tmp_path, telemetry=tuple(named[:2]), urls=("http://ada:hunter2@h",))
    Path(plan.output.journal).mkdir()
    said: list[str] = []
    sources = Sources(plan, tmp_path / "log", said.append)
    sources.sample(0, BEGIN)
    sources.sample(0, END)
    sources.close()
    dies = "the plugin telemetry:dies of acme 1.2: its process exited with 9; there are no further samples"
    assert said == [dies]
    steady = [line for line in read_samples(sample_path(Path(plan.output.journal), 0)) if isinstance(line, Sample)]
    assert [(each.moment.edge, list(each.values.values())) for each in steady] == [("begin", [1, 0]), ("end", [1, 0])]

    for patience in ("_START_S", "_END_S"):  # of one that never answers
        monkeypatch.setattr(f"aiperf.telemetry.process.{patience}", 0.2)
    slow = Sources(plan.replacing(telemetry=(named[2],)), tmp_path / "log", said.append)
    slow.sample(0, BEGIN)
    slow.sample(0, END)  # not waited for, nor named, again
    slow.close()
    assert said[1:] == ["the plugin telemetry:hangs of acme 1.2 was too slow for a sample at the begin of phase 0"]


class Ending:
    """A source's process whose end is waited for."""

    def __init__(self) -> None:
        self.patience_s = math.nan
        self.backlogged = self.let_go_of = False

    def let_go(self) -> None:
        self.let_go_of = True

    def end(self, patience_s: float) -> None:
        self.patience_s = patience_s

    def poll(self) -> int:
        return 0

    def receive(self, wait_s: float) -> list[bytes]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("finished", "late", "patience_s"), [(True, False, 10), (True, True, 2), (False, False, 2)])
def test_only_folds_that_will_come_are_waited_for(tmp_path: Path, finished: bool, late: bool, patience_s: float) -> None:
    sources, process = Sources(plan_for(tmp_path), tmp_path / "log", print), Ending()
    sources._running["t"] = process  # type: ignore[assignment]
    sources._late |= {"t"} if late else set()
    if finished:
        sources.finish()
    sources.close()
    assert process.let_go_of is finished
    assert patience_s - 1 < process.patience_s <= patience_s


class Answers:
    """A source's process that answers what it is told to."""

    def __init__(self, *batches: Sequence[Reply]) -> None:
        self.batches = list(batches)

    def send(self, message: Edge) -> None:
        pass

    def poll(self) -> None:
        pass

    def receive(self, wait_s: float) -> list[bytes]:
        return [msgspec.json.encode(reply) for reply in self.batches.pop(0)] if self.batches else []


def test_a_source_that_answers_again_is_waited_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("_START_S", "_EDGE_S"):
        monkeypatch.setattr(f"aiperf.telemetry.process.{patience}", 0.0)
    said: list[str] = []
    sources = Sources(plan_for(tmp_path), tmp_path / "log", said.append)
    slow = "t was too slow for a sample at the {} of phase {}"
    answers = Answers([], [], [Edge(0, BEGIN)], [], [Edge(1, END), SourceTrouble("a cloud")])
    sources._running["t"] = answers  # type: ignore[assignment]
    for phase, edge in ((0, BEGIN), (0, END), (1, BEGIN)):
        sources.sample(phase, edge)
    assert said == [slow.format("begin", 0)]
    sources.sample(2, BEGIN)
    sources.sample(1, END)
    assert said[1:] == [slow.format("begin", 2), "a cloud"], "what comes with the answer isn't lost"


def test_a_source_gets_the_runs_certificates_and_headers_and_no_file_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "knowing_sources.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for patience in ("_START_S", "_EDGE_S", "_END_S"):
        monkeypatch.setattr(f"aiperf.telemetry.process.{patience}", 60.0)
    knows = sample_ref("telemetry", "knowing_sources:Knows")
    plan = plan_for(tmp_path, telemetry=(knows,), tls=TlsPlan(ca_file="ca.pem"))
    Path(plan.output.journal).mkdir()
    sources = Sources(plan, tmp_path / "log", print, {"Authorization": "Bearer hunter2"})
    sources.sample(0, BEGIN)
    sources.close()
    path = sample_path(Path(plan.output.journal), 0)
    (sample,) = (line for line in read_samples(path) if isinstance(line, Sample))
    assert sample.values == {0: 1, 1: 1}
    assert "hunter2" not in path.read_text() + (tmp_path / "log").read_text()


def test_a_run_without_sources_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf.telemetry.process.SideProcess", None)
    sources = Sources(plan_for(tmp_path), tmp_path / "log", print)
    sources.sample(0, BEGIN)
    sources.sample(0, END)
    sources.close()
    assert not (tmp_path / "log").exists()
