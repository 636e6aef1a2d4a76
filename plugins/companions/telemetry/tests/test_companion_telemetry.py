"""Telemetry: samples are on disk at once, and no source harms a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.errors import AiperfError
from aiperf.parts.samples import SampleWriter, read_samples, sample_path
from aiperf.sdk.companion import CompanionContext
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.hooks import hookimpl
from aiperf.sdk.options import EncodedOptions, Options
from aiperf.sdk.plan import PhasePlan, Plan, Secrets, TlsPlan
from aiperf.sdk.series import (
    FailedSample,
    Line,
    Moment,
    RunningSeries,
    Sample,
    Series,
    SeriesHeader,
    SourceHeader,
    whole_samples,
)
from aiperf.sdk.telemetry import (
    Absent,
    Histogram,
    Point,
    Reading,
    SeriesKind,
    TelemetryContext,
    TelemetrySource,
    TelemetryTarget,
)
from aiperf_companion_telemetry import Telemetry, _Source
from aiperf_companion_telemetry.contract import TelemetryContract
from aiperf_companion_telemetry.messages import (
    BEGIN,
    END,
    Begun,
    Edge,
    Folded,
    Folding,
    Gone,
    Ready,
    Reply,
    Rest,
    SourceStart,
    SourceTrouble,
)
from aiperf_companion_telemetry.process import SourceProcess
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref
from msgspec.structs import replace

S = 1_000_000_000
SEEN: list[Any] = []


class TestItKeepsTheContract(TelemetryContract):
    pass


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

    def __init__(
        self, path: Path, *, hooks: tuple[PluginRef, ...] = (), series: PluginRef | None = None, **options: Any
    ) -> None:
        self.now_ns = 0
        self.said: list[Reply] = []
        self.path = path
        opened = list[bool]()

        def begin(work: Callable[[], object]) -> None:
            if not opened:  # what opens the source; the threads of targets are stepped through
                opened.append(True)
                work()

        self.process = SourceProcess(self.said.append, lambda: (self.now_ns, self.now_ns + 7 * S), begin=begin)
        given = EncodedOptions.of(Weather(**options)) if options else None
        listening = tuple((each, None) for each in hooks)
        folding = None if series is None else (series, None)
        self.start = SourceStart(
            ref("telemetry", Thermometer), given, TelemetryContext(), str(path), listening, (0, 5), folding
        )
        self.tell(self.start)
        self.until(0)

    def tell(self, message: Any) -> None:
        """Send a message, and let be done what is due at once."""
        self.process.take(msgspec.json.encode(message))
        self.until(self.now_ns / S)

    def until(self, second: float) -> None:
        """Advance the clock, and do what is due at each time."""
        while (rest := self._rest_s()) is not None and self.now_ns + round(rest * S) <= second * S:
            self.now_ns += round(rest * S)
            for loop in self.process.loops:
                loop.step()
            self.process.step()
        self.now_ns = max(self.now_ns, round(second * S))

    def _rest_s(self) -> float | None:
        rests = [self.process.rest_s(), *(loop.rest_s() for loop in self.process.loops)]
        return None if self.process.over else min((rest for rest in rests if rest is not None), default=None)

    def moments(self) -> list[tuple[float, str | None, int]]:
        found = [line.moment for line in read_samples(self.path) if isinstance(line, Sample)]
        return [(each.at_ns / S, each.edge, each.missed) for each in found]


def test_samples_come_at_phase_edges_and_at_the_interval(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.until(5)
    assert bench.moments() == [(0, None, 0)], "no further sample is due before a phase"
    for phase, begin, end in ((0, 5, 7.5), (1, 8, 9)):
        bench.until(begin)
        bench.tell(Edge(phase, BEGIN))
        bench.until(end)
        bench.tell(Edge(phase, END))
    bench.until(20)
    bench.process.close()
    assert bench.moments() == [
        (0, None, 0), (5, "begin", 0), (6, None, 0), (7, None, 0), (7.5, "end", 0), (7.6, "end", 0), (8, "begin", 0),
        (9, None, 0), (9, "end", 0), (9.1, "end", 0),
    ]  # fmt: skip
    assert bench.said == [Ready(), Edge(0, BEGIN), Edge(0, END), Edge(1, BEGIN), Edge(1, END), Folding(), Folded()]


@pytest.mark.parametrize(
    ("grows_until_s", "samples", "ended_s"), [(0, 2, 0.1), (2.15, 4, 0.3), (9, 6, 0.5)]
)
def test_behind_the_last_phase_samples_go_on_until_two_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows_until_s: float, samples: int, ended_s: float
) -> None:
    bench = Bench(tmp_path / "samples")

    def sample(self: Thermometer) -> list[Point]:
        at_s = bench.now_ns / S
        energy = Point("energy", at_s, SeriesKind.COUNTER, flows=True)
        return [Point("rain", min(at_s, grows_until_s), SeriesKind.COUNTER), Point("level", at_s), energy]

    monkeypatch.setattr(Thermometer, "sample", sample)
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    bench.tell(Edge(0, END, 2 * S, last=True))
    while bench.said[-1] != Edge(0, END, 2 * S, last=True):
        bench.until(bench.now_ns / S + 0.01)
    assert bench.now_ns / S == pytest.approx(2 + ended_s, abs=0.011)
    assert len([edge for _, edge, _ in bench.moments() if edge == END]) in (samples, samples - 1)


class Server:
    """Counts requests when they come and *late_s* behind their end; *others*: how many another client sends."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.late_s, self.others = bench, 0.0, 0
        self.before, self.requests, self.ended_s = 0, 0, 0.0

    def sample(self) -> list[Point]:
        whole = self.bench.now_ns / S >= self.ended_s + self.late_s
        ended = self.before + (self.requests + self.others if whole else 0)
        took = Histogram((0.1, math.inf), (0, ended), 0.5 * ended)
        return [
            Point("received", self.before + self.requests, SeriesKind.COUNTER), Point("took", took, SeriesKind.HISTOGRAM),
            Point("tokens", 7 * ended, SeriesKind.COUNTER), Point("uptime", self.bench.now_ns, SeriesKind.COUNTER, flows=True),
        ]  # fmt: skip

    def plan(self, requests: int, *, late_s: float = 0.0, others: int = 0) -> float:
        """Time in s from the end of a phase of two seconds to the last sample."""
        bench = self.bench
        begin_s = bench.now_ns / S
        self.before += self.requests + self.others
        self.requests, self.others = 0, 0
        bench.tell(Edge(0, BEGIN))
        bench.until(begin_s + 2)
        self.requests, self.others, self.late_s, self.ended_s = requests, others, late_s, begin_s + 2
        edge = Edge(0, END, bench.now_ns, last=True, requests=requests)
        bench.tell(edge)
        while edge not in bench.said:
            bench.until(bench.now_ns / S + 0.01)
        took_s = bench.now_ns / S - self.ended_s
        bench.tell(Rest())
        bench.process.step()
        bench.tell(replace(bench.start, path=f"{bench.path}-{begin_s}"))
        return took_s


def test_counters_that_counted_each_request_tell_when_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path / "samples")
    server = Server(bench)
    monkeypatch.setattr(Thermometer, "sample", server.sample)
    assert server.plan(200) == pytest.approx(0.1, abs=0.011), "nothing is known of its counters"
    assert server.plan(100) == pytest.approx(0.01, abs=0.011)
    assert server.plan(30) == pytest.approx(0.01, abs=0.011)
    late = server.plan(50, late_s=0.05)
    assert late == pytest.approx(0.2, abs=0.011), "what comes late is not missed"
    assert server.plan(50) == pytest.approx(0.1, abs=0.011), "a server that was late is not trusted"
    assert server.plan(50) == pytest.approx(0.01, abs=0.011)
    assert server.plan(50, others=3) == pytest.approx(0.1, abs=0.011), "another client"


@pytest.mark.parametrize(("slow_s", "late"), [(0.07, False), (0.2, True)])
def test_a_target_is_late_by_its_time_and_not_by_a_short_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_s: float, late: bool
) -> None:
    bench = Bench(tmp_path / "samples")
    (loop,) = bench.process.loops
    step = loop.step
    free_s = 5 + slow_s
    monkeypatch.setattr(loop, "step", lambda: bench.now_ns < free_s * S or step())
    monkeypatch.setattr(loop, "rest_s", lambda: None if bench.now_ns < free_s * S else 0.0 if loop._ask else None)
    bench.until(5)
    bench.tell(Edge(0, BEGIN))
    bench.until(5 + slow_s - 0.01)
    end = Edge(0, END, bench.now_ns, last=True)
    bench.tell(end)
    assert (end in bench.said) is late, "one that is late isn't waited for"
    bench.until(free_s)
    bench.tell(Begun(0, 5 * S))
    bench.until(7)
    assert end in bench.said
    assert ([edge for _, edge, _ in bench.moments()].count(END) == 1) is late, "its counters grow with each sample"


def test_missed_samples_are_counted_and_the_interval_keeps_its_phase(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.now_ns = round(3.2 * S)  # a sample took so long
    bench.until(4)
    assert bench.moments()[1:] == [(0, "begin", 0), (3.2, None, 2), (4, None, 0)]


class Cellar(TelemetryTarget):
    """A target whose samples are asked of the test."""

    def __init__(self, name: str, interval_s: float, given: Callable[[], Any]) -> None:
        self.name, self.interval_s, self._given = name, interval_s, given

    def sample(self) -> Any:
        return self._given()


def test_each_target_has_its_interval_samples_and_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> list[Point]:
        raise ConnectionError("a flood")

    def gone() -> list[Point]:
        raise Absent("no cellar")

    targets = [Cellar("a", 1.0, lambda: [Point("rain", 1.0)]), Cellar("b", 2.0, fails), Cellar("c", 1.0, gone)]
    monkeypatch.setattr(Thermometer, "targets", lambda self: targets)
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.until(4)
    bench.process.close()
    header, *lines = read_samples(bench.path)
    assert isinstance(header, SourceHeader) and [target.name for target in header.targets] == ["a", "b", "c"]
    assert [line.moment.at_ns / S for line in lines if isinstance(line, Sample)] == [0, 0, 1, 2, 3, 4]
    failed = [line for line in lines if isinstance(line, FailedSample)]
    assert [(line.at_ns / S, line.target) for line in failed] == [(0, 1), (0, 1), (2, 1), (4, 1)]
    who = "the plugin telemetry:thermometer of acme 1.2"
    assert [said for said in bench.said if isinstance(said, SourceTrouble)] == [
        SourceTrouble(f"{who} (b) failed: ConnectionError: a flood"), SourceTrouble(f"{who} (c): no cellar", absent=True),
    ]  # fmt: skip


def test_a_source_without_any_target_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> list[Point]:
        raise Absent("no cellar")

    monkeypatch.setattr(Thermometer, "targets", lambda self: [Cellar("a", 1.0, gone)])
    bench = Bench(tmp_path / "samples")
    assert bench.said[-1] == Gone() and bench.process.over and not bench.path.exists()


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ([Cellar("a", 1.0, list), Cellar("a", 1.0, list)],
         "ValueError: targets() gives 'a' twice: each target needs a name of its own"),
        (["a"], "TypeError: targets() gives str, not TelemetryTarget"),
    ],
)
def test_wrong_targets_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, targets: Any, why: str) -> None:
    monkeypatch.setattr(Thermometer, "targets", lambda self: targets)
    bench = Bench(tmp_path / "samples")
    assert bench.said == [SourceTrouble(f"the plugin telemetry:thermometer of acme 1.2 can't be started: {why}"), Gone()]


def test_a_target_that_hangs_misses_its_own_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At an edge it is waited for once, and no more until it answers."""
    targets = [Cellar(name, 1.0, lambda: [Point("rain", 1.0, SeriesKind.COUNTER)]) for name in "ab"]
    monkeypatch.setattr(Thermometer, "targets", lambda self: targets)
    bench = Bench(tmp_path / "samples")
    hanging = bench.process.loops[1]
    monkeypatch.setattr(hanging, "step", lambda: True)
    monkeypatch.setattr(hanging, "rest_s", lambda: None)
    for edge, until_s in ((Edge(0, BEGIN), 0.08), (Edge(0, END), 0.18), (Edge(1, BEGIN), 0.18)):
        bench.tell(edge)
        while bench.said[-1] != edge:
            bench.until(bench.now_ns / S + 0.01)
        assert bench.now_ns / S == pytest.approx(until_s), "late targets are not waited for"
    assert len([line for line in read_samples(bench.path) if isinstance(line, Sample) and line.target == 0]) == 5


def test_a_reading_has_its_own_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path / "samples")

    def page() -> Reading:
        wall_ns = bench.now_ns + 7 * S
        bench.now_ns += 3 * S
        return Reading([Point("rain", 1.0)], wall_ns + 1, wall_ns + S)

    monkeypatch.setattr(Thermometer, "sample", lambda self: page())
    bench.tell(Edge(0, BEGIN))
    moment = next(line.moment for line in read_samples(bench.path) if isinstance(line, Sample) and line.moment.phase == 0)
    assert (moment.at_ns, moment.wall_ns, moment.took_ns) == (S, 8 * S, 3 * S)
    assert (moment.sent_ns, moment.first_byte_ns) == (7 * S + 1, 8 * S)


def test_a_file_can_be_read_to_its_last_whole_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    with bench.path.open("ab") as file:
        file.write(b'{"type":"sample","mom')
    origin, roof, rain, sample, again = read_samples(bench.path)
    assert isinstance(origin, SourceHeader) and (origin.ref.name, origin.interval_s) == ("thermometer", 1.0)
    assert isinstance(again, Sample) and again.moment.edge == "begin"
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
    assert bench.said[:2] == [said, Gone()]
    assert not bench.path.exists()


@pytest.mark.parametrize(("fails", "why"), [(3, "ConnectionError: a cloud"), (-3, "TypeError: it gives float, not Point")])
def test_a_failing_sample_is_reported_and_the_next_is_taken(tmp_path: Path, fails: int, why: str) -> None:
    bench = Bench(tmp_path / "samples", fails=fails, stop=True)
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    bench.process.close()
    assert [at for at, *_ in bench.moments()] == [0, 0, 2]
    assert [line.why for line in read_samples(bench.path) if isinstance(line, FailedSample)] == [why]
    who = "the plugin telemetry:thermometer of acme 1.2"
    assert bench.said == [
        Ready(), Edge(0, BEGIN), SourceTrouble(f"{who} failed: {why}"), Folding(), Folded(),
        SourceTrouble(f"{who} failed at its end: ZeroDivisionError: stuck"),
    ]  # fmt: skip


def test_hooks_see_every_sample_and_a_failing_hook_harms_nothing(tmp_path: Path) -> None:
    SEEN.clear()
    bench = Bench(tmp_path / "samples", hooks=(ref("hooks", Listener), ref("hooks", Deaf)))
    bench.tell(Edge(0, BEGIN))
    bench.until(1)
    assert SEEN == [("thermometer", 3, None), ("thermometer", 3, "begin"), ("thermometer", 3, None)]
    (trouble,) = [said for said in bench.said if isinstance(said, SourceTrouble)]
    assert trouble.message == "the plugin hooks:deaf of acme 1.2 failed in aiperf_samples_arrived: KeyError: 'thermometer'"
    assert len(bench.moments()) == 3


def test_a_full_disk_ends_only_the_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path / "samples")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SampleWriter, "write", full)
    bench.tell(Edge(0, BEGIN))
    assert [type(said).__name__ for said in bench.said] == ["Ready", "SourceTrouble", "Gone", "Edge"]
    assert "its samples can't be written: No space left on device" in str(bench.said[1])


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
    given = iter([same, same, [changed, *same], [Point("y", 1.0)], [changed]])
    monkeypatch.setattr(Thermometer, "sample", lambda self: next(given))
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.until(3)
    assert bench.said == [
        Ready(),
        Edge(0, BEGIN),
        SourceTrouble(
            "the plugin telemetry:thermometer of acme 1.2 changes the kind, unit, labels or buckets of x,"
            " which goes on as another series"
        ),
    ]
    whole = [line for line in whole_samples(read_samples(bench.path)) if isinstance(line, Sample)]
    assert [len(line.values) for line in whole] == [2, 2, 3, 1, 1]


def test_one_source_has_a_bounded_number_of_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf.rundir.samples.MOST_SERIES", 3)
    monkeypatch.setattr(Thermometer, "sample", lambda self: [Point("p", 1.0, labels={"pid": str(pid)}) for pid in range(9)])
    bench = Bench(tmp_path / "samples")
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    (trouble,) = (said for said in bench.said if isinstance(said, SourceTrouble))
    assert trouble.message.endswith("has more than 3 series; further ones are left out")
    whole = [line for line in whole_samples(read_samples(bench.path)) if isinstance(line, Sample)]
    assert [len(line.values) for line in whole] == [3, 3, 3, 3]


# Folds


class Counting(Series[None]):
    """Says what it was asked for beside the load."""

    def running(self, folds: Path, slices: tuple[int, int] | None) -> RunningSeries:
        return CountingFold(folds, slices)


class CountingFold(RunningSeries):
    fails: str = ""
    error: Exception = OSError(28, "No space left on device")

    def __init__(self, folds: Path, slices: tuple[int, int] | None) -> None:
        self.folds, self.said = folds, [f"slices {slices}"]

    def _say(self, what: str) -> None:
        if self.fails and what.startswith(self.fails):
            raise self.error
        self.said.append(what)

    def take(self, line: Line) -> None:
        self._say(type(line).__name__)

    def begin(self, phase: int, begin_ns: int) -> None:
        self._say(f"begin {phase} {begin_ns}")

    def end(self, phase: int, end_ns: int) -> None:
        self._say(f"end {phase} {end_ns}")

    def close(self) -> None:
        self._say("close")
        self.folds.write_text("\n".join(self.said))

    def drop(self) -> None:
        self.folds.write_text("dropped")


def counted_phase(folder: Path, seconds: int) -> Bench:
    """A source's process behind one phase of as many seconds, whose samples :class:`Counting` folds."""
    bench = Bench(sample_path(folder, 0), series=ref("series", Counting))
    bench.tell(Edge(0, BEGIN))
    bench.tell(Begun(0, 7))
    bench.until(seconds)
    bench.tell(Edge(0, END, 8))
    bench.until(seconds + 0.2)
    bench.process.close()
    return bench


def test_a_sources_process_folds_what_is_on_disk_by_phase(tmp_path: Path) -> None:
    counted_phase(tmp_path, 2)
    assert (tmp_path / "telemetry-0.folds").read_text().split("\n") == [
        "slices (0, 5)", "SourceHeader", "SeriesHeader", "SeriesHeader", "Sample", "Sample", "begin 0 7", "Sample", "Sample",
        "Sample", "Sample", "end 0 8", "close",
    ]  # fmt: skip


@pytest.mark.parametrize("fails", ["begin", "Sample", "end", "close"])
@pytest.mark.parametrize(("error", "said"), [
    (OSError(28, "No space left on device"), []),
    (ZeroDivisionError("odd"), [SourceTrouble("the plugin series:counting of acme 1.2 failed: ZeroDivisionError: odd")]),
])  # fmt: skip
def test_folds_that_fail_cost_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, error: Exception, said: list[Reply]
) -> None:
    monkeypatch.setattr(CountingFold, "fails", fails)
    monkeypatch.setattr(CountingFold, "error", error)
    bench = counted_phase(tmp_path, 2)
    assert len(bench.moments()) == 6
    assert [reply for reply in bench.said if isinstance(reply, SourceTrouble)] == said
    assert (tmp_path / "telemetry-0.folds").read_text() == "dropped"


@pytest.mark.parametrize(
    "point",
    [Point("h", Histogram((1.0, math.inf), (1,), 1.0), SeriesKind.HISTOGRAM), Point("g", 1.0, labels={"a": "b", 1: "c"})],  # type: ignore[dict-item]
)
def test_a_point_that_is_wrong_fails_its_sample_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Point) -> None:
    given = iter([[], [Point("g", 1.0)], [Point("new", 1.0), point], [Point("new", 2.0)]])
    monkeypatch.setattr(Thermometer, "sample", lambda self: next(given))
    bench = Bench(sample_path(tmp_path, 0))
    bench.tell(Edge(0, BEGIN))
    bench.until(2)
    assert [at for at, *_ in bench.moments()] == [0, 0, 2]
    lines = [*read_samples(bench.path)]
    assert len([line for line in lines if isinstance(line, FailedSample)]) == 1
    assert [line.name for line in lines if isinstance(line, SeriesHeader)][:2] == ["g", "new"]
    assert "failed: " in str(bench.said[2]) and len(bench.said) == 3


# The run's side


FAKES = '''
import os
import time

from aiperf import Point, TelemetrySource
from aiperf_companion_telemetry import edges


class Steady(TelemetrySource):
    def start(self):
        edges._PATIENCE_NS = {False: 60_000_000_000, True: 60_000_000_000}  # the machine may be busy

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


def begun(plan: Plan, log: Path, report: Callable[[str], None], secrets: Secrets | None = None) -> Telemetry:
    """The companion of a run that begins."""
    Path(plan.output.journal).mkdir(exist_ok=True)
    made = Telemetry(None, CompanionContext(plan, secrets or Secrets(), log, report))
    made.begin()
    return made


def through(made: Telemetry, *edges: tuple[int, str]) -> None:
    """Tell of edges of phases."""
    for index, edge in edges:
        phase = PhasePlan("p", "profiling", index, "burst")
        made.phase_begins(phase) if edge == BEGIN else made.phase_ended(phase, 0)


def until_ready(made: Telemetry) -> None:
    while made.waiting() is not None:
        time.sleep(0.01)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that answer, or die, may take their time: the machine may be busy."""
    for patience in ("_NAMED_S", "_BEGIN_S", "_END_S", "_CLOSE_S"):
        monkeypatch.setattr(f"aiperf_companion_telemetry.{patience}", 60.0)


def test_a_dying_or_hanging_source_costs_only_its_own_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    (tmp_path / "fake_sources.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    named = [sample_ref("telemetry", f"fake_sources:{name}") for name in ("Steady", "Dies", "Hangs")]
    given = tuple(ref.key for ref in named)
    plan = plan_for(tmp_path, telemetry=tuple(named[:2]), urls=("http://ada:hunter2@h",), given=given)
    said: list[str] = []
    sources = begun(plan, tmp_path / "log", said.append)
    until_ready(sources)
    through(sources, (0, BEGIN), (0, END))
    sources.finish()
    sources.close()
    dies = "the plugin telemetry:dies of acme 1.2: its process exited with 9; there are no further samples"
    assert said == [dies]
    lines = whole_samples(read_samples(sample_path(Path(plan.output.journal), 0)))
    steady = [(each.moment.edge, list(each.values.values())) for each in lines if isinstance(each, Sample)]
    assert steady[:2] == [(None, [1, 0]), ("begin", [1, 0])] and ("end", [1, 0]) in steady[2:]

    monkeypatch.setattr("aiperf_companion_telemetry._NAMED_S", 0.2)  # of one that never answers
    slow = begun(plan.replacing(telemetry=(named[2],)), tmp_path / "log", said.append)
    until_ready(slow)
    through(slow, (0, BEGIN), (0, END))  # not waited for
    slow.finish()
    slow.close()
    assert said[1:] == ["the plugin telemetry:hangs of acme 1.2 has given no sample"]


class Child:
    """A source's process that answers at once what it is told to."""

    def __init__(self, *batches: Sequence[Reply]) -> None:
        self.batches = list(batches)
        self.patience_s = math.nan
        self.backlogged = self.let_go_of = False

    def send(self, message: Edge) -> None:
        pass

    def let_go(self) -> None:
        self.let_go_of = True

    def raise_priority(self) -> bool:
        return True

    def end(self, patience_s: float) -> None:
        self.patience_s = patience_s

    def poll(self) -> None:
        pass

    def receive(self, wait_s: float) -> list[bytes]:
        return [msgspec.json.encode(reply) for reply in self.batches.pop(0)] if self.batches else []

    def close(self) -> None:
        pass


def with_child(made: Telemetry, child: Child) -> Any:
    path = str(sample_path(Path(made.context.plan.output.journal), 0))
    start = SourceStart(sample_ref("telemetry", "a:b"), None, TelemetryContext(), path)
    source = _Source(start, child)  # type: ignore[arg-type]
    source.ready = True
    made._running.append(source)
    return source


@pytest.mark.parametrize(
    ("finished", "replies", "patience_s"),
    [(True, [[Folding(), Folded()]], 0.2), (True, [[Folding()], [], [Folded()]], 0.2), (True, [], 0), (False, [], 0)],
)
def test_only_folds_that_will_come_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool, replies: list[list[Reply]], patience_s: float
) -> None:
    monkeypatch.setattr("aiperf_companion_telemetry._CLOSE_S", 0.01)
    made, child = begun(plan_for(tmp_path), tmp_path / "log", print), Child(*replies)
    made._flush_s = -1.0
    with_child(made, child)
    half = sample_path(Path(made.context.plan.output.journal), 0).with_suffix(".draft")
    half.touch()
    if finished:
        made.finish()
    made.close()
    assert child.let_go_of and child.patience_s == patience_s and not half.exists()


def test_a_source_that_answers_again_is_waited_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("_BEGIN_S", "_END_S"):
        monkeypatch.setattr(f"aiperf_companion_telemetry.{patience}", 1e-6)
    said: list[str] = []
    made = begun(plan_for(tmp_path), tmp_path / "log", said.append)
    child = Child([], [Edge(1, BEGIN), SourceTrouble("a cloud")])
    source = with_child(made, child)
    through(made, (1, BEGIN))
    assert not source.late and said == ["a cloud"], "what comes with the answer isn't lost"
    through(made, (1, BEGIN), (1, END))
    source.reached.clear()
    through(made, (2, BEGIN))
    assert source.late
    child.batches = [[Edge(2, BEGIN)]]
    through(made, (2, END))
    assert not source.late


def test_a_source_gets_the_runs_certificates_and_headers_and_no_file_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    (tmp_path / "knowing_sources.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    knows = sample_ref("telemetry", "knowing_sources:Knows")
    plan = plan_for(tmp_path, telemetry=(knows,), tls=TlsPlan(ca_file="ca.pem"), given=(knows.key,))
    sources = begun(plan, tmp_path / "log", print, Secrets({"Authorization": "Bearer hunter2"}))
    until_ready(sources)
    sources.close()
    path = sample_path(Path(plan.output.journal), 0)
    (sample,) = (line for line in read_samples(path) if isinstance(line, Sample))
    assert sample.values == {0: 1, 1: 1}
    assert "hunter2" not in repr([*read_samples(path)]) + (tmp_path / "log").read_text()


def test_a_run_without_sources_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_companion_telemetry.SideProcess", None)
    sources = begun(plan_for(tmp_path), tmp_path / "log", print)
    through(sources, (0, BEGIN), (0, END))
    sources.close()
    assert not (tmp_path / "log").exists()
