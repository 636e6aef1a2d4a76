"""Folds samples over the phases of a run and over its time slices, in one pass that holds no samples.

Between two samples a gauge is taken as a straight line, and a counter (each of a histogram's, too) as growing evenly, so the
result of a phase doesn't depend on the position of its edges between samples.  A counter that decreased has restarted at 0.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.telemetry.percentiles import by_weight, of_histogram
from aiperf.telemetry.samples import FailedSample, Sample, SeriesHeader, SourceHeader, Value, read_samples, sample_files

log = logging.getLogger(__name__)

MOST_PARTS = 200_000
"""Series times slices of one source; series beyond have no slices."""
_MOST_VALUES = 4096
"""Distinct values of a gauge in a window; with more, percentiles are those of values with three digits."""


class Window(Struct, frozen=True):
    """A phase from *begin_ns* to *end_ns* of the monotonic clock."""

    phase: int
    begin_ns: float
    end_ns: float


class _Step(NamedTuple):
    """From one sample of a series to the next."""

    before: Sequence[float]
    after: Sequence[float]
    from_ns: float
    until_ns: float


class _Result(NamedTuple):
    """Statistics, buckets and estimates of one window; all empty without samples."""

    stats: dict[str, float] = {}
    buckets: dict[str, float] = {}
    estimates: dict[str, float] = {}


class _Level:
    """A gauge over one window."""

    def __init__(self, _: SeriesHeader) -> None:
        self.count = 0
        self.least, self.most, self.only = math.inf, -math.inf, math.nan
        self.covered_ns = self.area = self.square = 0.0
        self.weights: dict[float, float] = {}
        self.rounded = False

    def at(self, values: Sequence[float]) -> None:
        """Add a sample within the window."""
        self.count += 1
        self.only = values[0]
        self.least, self.most = min(self.least, self.only), max(self.most, self.only)

    def between(self, step: _Step, begin_ns: float, end_ns: float) -> None:
        """Add a part of a step: a straight line."""
        slope = (step.after[0] - step.before[0]) / (step.until_ns - step.from_ns)
        first, last = (step.before[0] + slope * (at_ns - step.from_ns) for at_ns in (begin_ns, end_ns))
        self.covered_ns += end_ns - begin_ns
        self.area += (first + last) / 2 * (end_ns - begin_ns)
        self.square += (first * first + first * last + last * last) / 3 * (end_ns - begin_ns)
        self.least, self.most = min(self.least, first, last), max(self.most, first, last)
        for value in (first, last):
            self._weigh(value, (end_ns - begin_ns) / 2)
        if len(self.weights) > _MOST_VALUES and not self.rounded:
            self.rounded, weights, self.weights = True, self.weights, {}
            for value, weight in weights.items():
                self._weigh(value, weight)

    def _weigh(self, value: float, weight: float) -> None:
        value = float(f"{value:.3g}") if self.rounded else value
        self.weights[value] = self.weights.get(value, 0.0) + weight

    def result(self) -> _Result:
        if not self.covered_ns and not self.count:
            return _Result()
        mean = self.area / self.covered_ns if self.covered_ns else self.only
        spread = self.square / self.covered_ns - mean * mean if self.covered_ns else 0.0
        std = math.sqrt(max(0.0, spread))
        stats = {"avg": mean, "min": self.least, "max": self.most, "std": std, "count": float(self.count)}
        return _Result(stats | by_weight(self.weights or {self.only: 1.0}))


class _Presence(_Level):
    """Labels that were there in one window."""

    def result(self) -> _Result:
        return _Result({"count": float(self.count)}) if self.count else _Result()


class _Growth:
    """A counter, or the counters of a histogram side by side, over one window."""

    def __init__(self, series: SeriesHeader) -> None:
        self.series = series
        self.count = self.resets = 0
        self.covered_ns = 0.0
        self.grown = [0.0] * (len(series.bounds) + 2 if series.kind is SeriesKind.HISTOGRAM else 1)

    def at(self, values: Sequence[float]) -> None:
        self.count += 1

    def between(self, step: _Step, begin_ns: float, end_ns: float) -> None:
        reset = step.after[-1] < step.before[-1]  # the last value of a histogram counts all observations
        increases = step.after if reset else [new - old for old, new in zip(step.before, step.after, strict=True)]
        share = (end_ns - begin_ns) / (step.until_ns - step.from_ns)
        self.covered_ns += end_ns - begin_ns
        self.resets += reset
        self.grown = [total + increase * share for total, increase in zip(self.grown, increases, strict=True)]

    def result(self) -> _Result:
        if not self.covered_ns:
            return _Result()
        seconds = self.covered_ns / 1e9
        resets = {"resets": float(self.resets)} if self.resets else {}
        total, *counts = self.grown
        if self.series.kind is SeriesKind.COUNTER:
            return _Result({"total": total, "rate": total / seconds, "count": float(self.count), **resets})
        observed = counts[-1]
        mean = {"avg": total / observed} if observed else {}
        buckets = dict(zip([*map(repr, self.series.bounds), "+Inf"], counts, strict=True))
        stats = {"count": observed, "sum": total, **mean, "rate": observed / seconds, **resets}
        return _Result(stats, buckets, of_histogram(self.series.bounds, counts, total))


_Part: TypeAlias = _Level | _Growth
_PARTS: dict[SeriesKind, type[_Level] | type[_Growth]] = {
    SeriesKind.COUNTER: _Growth,
    SeriesKind.HISTOGRAM: _Growth,
    SeriesKind.INFO: _Presence,
}


class _Windows:
    """One series over windows that don't overlap, in the order of time."""

    def __init__(self, windows: Sequence[Window], begins: Sequence[float]) -> None:
        self.windows, self.begins = windows, begins
        self.parts: dict[int, _Part] = {}

    def add(self, series: SeriesHeader, at_ns: float, values: Sequence[float], step: _Step | None) -> None:
        """A sample, and the step that leads to it; None for the first."""
        first = bisect_right(self.begins, at_ns if step is None else step.from_ns) - 1
        for number in range(max(0, first), bisect_right(self.begins, at_ns)):
            window = self.windows[number]
            begin_ns = max(window.begin_ns, at_ns if step is None else step.from_ns)
            end_ns = min(window.end_ns, at_ns)
            if end_ns < begin_ns:
                continue
            part = self.parts.get(number)
            if part is None:
                part = self.parts[number] = _PARTS.get(series.kind, _Level)(series)
            if at_ns <= window.end_ns:
                part.at(values)
            if step is not None and end_ns > begin_ns:
                part.between(step, begin_ns, end_ns)


class _SeriesFold:
    """One series: its last sample, and its level or growth by window, for each list of windows (phases, slices)."""

    def __init__(self, series: SeriesHeader, lists: Iterable[Sequence[Window]]) -> None:
        self.series = series
        self.lists = [_Windows(windows, [window.begin_ns for window in windows]) for windows in lists]
        self._last: tuple[float, Sequence[float]] | None = None

    def add(self, at_ns: float, value: Value) -> None:
        """Add a sample; one that isn't later than the one before is no news."""
        values = value if isinstance(value, list) else [value]
        if self._last is not None and at_ns <= self._last[0]:
            return
        step = None if self._last is None else _Step(self._last[1], values, self._last[0], at_ns)
        for windows in self.lists:
            windows.add(self.series, at_ns, values, step)
        self._last = at_ns, values

    def summaries(self, source: str, which: int) -> Iterator[tuple[int, SeriesSummary]]:
        """The series by window, in the list *which*, where it has samples."""
        series = self.series
        about = series.name, series.kind.value, series.unit, series.labels, series.help
        for number, part in sorted(self.lists[which].parts.items()):
            stats, buckets, estimates = part.result()
            if stats:
                phase = self.lists[which].windows[number].phase
                yield number, SeriesSummary(source, phase, *about, stats, buckets, estimates)


def telemetry(journal: Path, windows: Sequence[Window], slices: Sequence[Window] = ()) -> tuple[SourceSummary, ...]:
    """Summaries of the run's telemetry sources; empty without samples.  Windows, and slices, don't overlap each other."""
    return tuple(filter(None, (_source(path, windows, slices) for path in sample_files(journal))))


def _source(path: Path, windows: Sequence[Window], slices: Sequence[Window]) -> SourceSummary | None:
    origin: SourceHeader | None = None
    tracked: dict[int, _SeriesFold] = {}
    samples = failed = missed = 0
    for line in read_samples(path):
        match line:
            case SourceHeader():
                origin = line
            case SeriesHeader():
                sliced = len(slices) * (len(tracked) + 1) <= MOST_PARTS
                tracked[line.id] = _SeriesFold(line, (windows, slices if sliced else ()))
            case Sample(moment, values, timed):
                samples += 1
                missed += moment.missed
                for number, value in values.items():
                    tracked[number].add(moment.at_ns, value)
                for number, wall_ns, value in timed:
                    tracked[number].add(moment.at_ns + wall_ns - moment.wall_ns, value)
            case FailedSample():
                failed += 1
    if origin is None:
        return None
    if len(slices) * len(tracked) > MOST_PARTS:
        log.warning("%s: time slices have the first %d of %d series", origin.ref, MOST_PARTS // len(slices), len(tracked))
    ref = origin.ref
    series = tuple(summary for fold in tracked.values() for _, summary in fold.summaries(ref.name, 0))
    by_slice: list[list[SeriesSummary]] = [[] for _ in slices]
    for fold in tracked.values():
        for number, summary in fold.summaries(ref.name, 1):
            by_slice[number].append(summary)
    about = ref.name, ref.distribution, ref.version, origin.interval_s, samples, failed, missed
    return SourceSummary(*about, series, tuple(map(tuple, by_slice)))
