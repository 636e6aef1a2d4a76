"""Folds that a source's process makes while it samples are those of its samples, or there are none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from aiperf.parts.samples import SampleWriter, folds_path, read_samples, sample_files, sample_path
from aiperf.sdk.series import Moment, Sample, SourceHeader, TargetHeader, Window, whole_samples
from aiperf.sdk.summary import SourceSummary
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind
from aiperf_series_by_time import ByTime
from aiperf_series_by_time.stored import RunningFold, read_folds
from aiperf_testing.plans import sample_ref
from msgspec.structs import replace

S = 1_000_000_000


def over(begin_s: float, end_s: float, phase: int = 0) -> Window:
    return Window(phase, round(begin_s * S), round(end_s * S))


def telemetry(journal: Path, windows: list[Window], slices: list[Window] | None = None) -> list[SourceSummary]:
    """The summaries of all sources."""
    made = (
        ByTime().summary(folds_path(path), lambda path=path: read_samples(path), windows, slices or [])  # type: ignore[misc]
        for path in sample_files(journal)
    )
    return [one for one in made if one is not None]



WIDTH_NS = S // 2
PHASES = [over(10, 12, 0), over(13, 20.3, 1)]


class Running:
    """A source that samples and folds; *slices* are those of phase 1."""

    def __init__(self, folder: Path) -> None:
        self.path = sample_path(folder, 0)
        self.fold = RunningFold(folds_path(self.path), (1, WIDTH_NS))
        header = SourceHeader(sample_ref("telemetry", name="t"), 0.25)
        self.writer = SampleWriter(self.path, header, self.fold.take)

    def sample(self, at_s: float, points: list[Point]) -> None:
        self.writer.add(points, Moment(round(at_s * S), round(at_s * S), 0, 0))

    def close(self) -> None:
        self.writer.close()
        self.fold.close()


def slices_of(window: Window) -> list[Window]:
    edges = range(window.begin_ns, window.end_ns, WIDTH_NS)
    return [Window(window.phase, begin_ns, min(begin_ns + WIDTH_NS, window.end_ns)) for begin_ns in edges]


def sampled(folder: Path, points: Callable[[float], list[Point]], phases: list[Window]) -> list[Window]:
    """Phases with a sample before their begin, every quarter of a second, and behind their end; gives the slices."""
    running = Running(folder)
    for phase in phases:
        begin_s, end_s = phase.begin_ns / S, phase.end_ns / S
        running.sample(begin_s - 0.01, points(begin_s))
        running.fold.begin(phase.phase, phase.begin_ns)
        for step in range(1, math.ceil((end_s - begin_s) * 4)):
            running.sample(begin_s + step / 4, points(begin_s + step / 4))
        running.sample(end_s + 0.02, points(end_s))
        running.fold.end(phase.phase, phase.end_ns)
    running.close()
    return slices_of(phases[-1])


def changing(at_s: float) -> list[Point]:
    """Series of all kinds that come, go, begin again and have times of their own."""
    draw, points = random.Random(at_s), list[Point]()
    for number in range(30):
        labels = {"n": str(number)}
        if draw.random() < 0.1:
            continue
        grown = at_s * number if draw.random() < 0.95 else 0.0
        counts = (grown, 2 * grown, 3 * grown)
        points += [
            Point("level", draw.choice([1.0, 2.5, draw.random()]), labels=labels),
            Point("flow", grown, SeriesKind.COUNTER, labels=labels),
            Point("wait", Histogram((0.5, 2.0, math.inf), counts, 2 * grown), SeriesKind.HISTOGRAM, labels=labels),
        ]
        times = sorted(round((at_s - draw.random()) * S) for _ in range(draw.randrange(3)))
        points += [Point("own", draw.random(), labels=labels, at_ns=at_ns) for at_ns in times]
    return points


def test_folds_of_a_run_are_exactly_those_of_its_samples(tmp_path: Path) -> None:
    slices = sampled(tmp_path, changing, PHASES)
    folds = read_folds(folds_path(sample_path(tmp_path, 0)), PHASES, slices)
    assert folds is not None and len(folds.parts) > 1000
    running = telemetry(tmp_path, PHASES, slices)
    sample_path(tmp_path, 0).with_suffix(".folds").unlink()
    assert telemetry(tmp_path, PHASES, slices) == running
    assert len(running[0].slices) == 15 and all(running[0].slices)


def two_targets(folder: Path, points: Callable[[float], list[Point]]) -> Path:
    """Samples of two targets, each in turn every quarter of a second, a third of them failed."""
    path = sample_path(folder, 0)
    targets = (TargetHeader("http://a", 0.25), TargetHeader("http://b", 0.25))
    writer = SampleWriter(path, SourceHeader(sample_ref("telemetry", name="t"), 0.25, targets))
    for step in range(36, 90):
        at_ns = step * S // 4
        if step % 3:
            writer.add(points(step // 4 / 2 + step % 2), Moment(at_ns, at_ns, 0, 0), step % 2)
        else:
            writer.failed(at_ns, 0, "it rains", step % 2)
    writer.close()
    return path


@pytest.mark.parametrize("seed", range(20))
def test_changed_and_whole_samples_have_one_fold(tmp_path: Path, seed: int) -> None:
    path = two_targets(tmp_path, lambda at_s: changing(at_s + seed))
    slices = slices_of(PHASES[1])
    lines = [*read_samples(path)]
    samples = [line for line in lines if isinstance(line, Sample)]
    assert any(line.ended for line in samples) and not all(line.whole for line in samples)
    folds = folds_path(path)
    changed = ByTime().summary(folds, lambda: iter(lines), PHASES, slices)
    whole = ByTime().summary(folds, lambda: whole_samples(lines), PHASES, slices)
    without = ByTime().summary(
        folds, lambda: (replace(line, ended=[]) if isinstance(line, Sample) else line for line in whole_samples(lines)),
        PHASES, slices,
    )  # fmt: skip
    assert changed == whole
    assert changed is not None and without is not None
    assert (changed.series, changed.slices) == (without.series, without.slices)
    assert {series.target for series in changed.series} == {"http://a", "http://b"}
    assert [target.failed for target in changed.targets] == [9, 9]


@pytest.mark.parametrize(
    ("windows", "slices"),
    [([over(10, 12, 0), over(13, 20.4, 1)], []), (PHASES[1:], []), (PHASES, slices_of(over(13, 20, 1)))],
)
def test_folds_of_other_windows_are_not_used(tmp_path: Path, windows: list[Window], slices: list[Window]) -> None:
    sampled(tmp_path, changing, PHASES)
    path = folds_path(sample_path(tmp_path, 0))
    assert read_folds(path, windows, slices) is None
    assert read_folds(path, [*PHASES, over(0, 0, 2)], []) is not None, "a phase that never began is no window"


@pytest.mark.parametrize("cut", [1, 100, 5000])
def test_damaged_folds_are_made_again(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    slices = sampled(tmp_path, changing, PHASES)
    expected = telemetry(tmp_path, PHASES, slices)
    path = sample_path(tmp_path, 0).with_suffix(".folds")
    path.write_bytes(path.read_bytes()[:-cut])
    assert telemetry(tmp_path, PHASES, slices) == expected
    assert "is damaged; its samples are folded again" in caplog.text


def test_what_was_sampled_after_the_end_belongs_to_no_phase(tmp_path: Path) -> None:
    """The end of a phase is known later than it was, and samples were taken in between."""
    running = Running(tmp_path)
    running.sample(10, [Point("g", 1.0)])
    running.fold.begin(1, 10 * S)
    for at_s in (11, 12, 13.5):
        running.sample(at_s, [Point("g", 1.0 if at_s < 12 else 9.0)])
    running.fold.end(1, 11 * S)
    running.close()
    (source,) = telemetry(tmp_path, [over(10, 11, 1)])
    assert read_folds(folds_path(running.path), [over(10, 11, 1)], []) is not None
    assert [series.stats["max"] for series in source.series] == [1.0]


def late_end(running: Running) -> None:
    running.fold.begin(1, 10 * S)
    for at_s in (10, 14, 18):
        running.sample(at_s, [Point("g", float(at_s))])
    running.fold.end(1, 11 * S)  # samples behind it are folded already


def no_begin(running: Running) -> None:
    running.sample(10, [Point("g", 1.0)])
    running.fold.end(1, 11 * S)


def no_end(running: Running) -> None:
    running.fold.begin(1, 10 * S)
    running.sample(10, [Point("g", 1.0)])


@pytest.mark.parametrize("bad_day", [late_end, no_begin, no_end])
def test_without_exact_edges_there_are_no_folds(tmp_path: Path, bad_day: Callable[[Running], None]) -> None:
    running = Running(tmp_path)
    bad_day(running)
    running.close()
    assert [path.name for path in tmp_path.iterdir()] == ["telemetry-0.samples"]
    (source,) = telemetry(tmp_path, [over(10, 11, 1)])
    assert [series.name for series in source.series] == ["g"]


def test_a_phase_may_begin_before_the_first_sample(tmp_path: Path) -> None:
    def late(at_s: float) -> list[Point]:
        return [Point("g", at_s)] if at_s > 15 else []

    slices = sampled(tmp_path, late, PHASES)
    assert read_folds(folds_path(sample_path(tmp_path, 0)), PHASES, slices) is not None
    (source,) = telemetry(tmp_path, PHASES, slices)
    (series,) = source.series
    assert series.phase == 1
    assert [series.stats["min"], series.stats["max"]] == pytest.approx([15.25, 20.28], abs=0.02)
    assert [len(part) for part in source.slices] == [0] * 4 + [1] * 11


def test_a_source_without_a_sample_at_the_end_is_partial(tmp_path: Path) -> None:
    running = Running(tmp_path)
    for at_s in (0, 1, 2, 3):
        running.sample(at_s, [Point("g", 1.0)])
    running.close()
    for end_s, partial in ((2.5, ()), (3.9, ()), (4.1, (0,))):
        (source,) = telemetry(tmp_path, [over(0, end_s)])
        assert source.partial == partial
