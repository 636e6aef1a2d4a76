"""Folds samples over the phases of a run and over its time slices, in one pass that holds few samples.

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

import numpy as np
from msgspec import Struct

from aiperf.sdk.columns import Floats
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.telemetry.percentiles import by_weight, of_histogram
from aiperf.telemetry.samples import FailedSample, Sample, SeriesHeader, SourceHeader, Value, read_samples, sample_files

log = logging.getLogger(__name__)

MOST_PARTS = 200_000
"""Series times slices of one source; series beyond have no slices."""
_AT_ONCE = 256
"""Samples of a series that are folded together."""
_MOST_VALUES = 4096
"""Distinct values of a gauge in a window; with more, percentiles are those of values with three digits."""


class Window(Struct, frozen=True):
    """A phase from *begin_ns* to *end_ns* of the monotonic clock."""

    phase: int
    begin_ns: float
    end_ns: float


class _Samples(NamedTuple):
    """Samples of a series in the order of time, a row of values each; the first one was folded before if *carried*."""

    at_ns: Floats
    values: Floats
    carried: bool

    def inside(self, window: Window) -> Floats:
        """The values of those within the window, without the carried one."""
        first, last = self.at_ns.searchsorted(window.begin_ns, "left"), self.at_ns.searchsorted(window.end_ns, "right")
        return self.values[max(first, self.carried) : last]

    def steps(self, window: Window) -> tuple[Floats, Floats, Floats]:
        """Those between which the window lies: instants, instants within the window, values."""
        first = max(0, self.at_ns.searchsorted(window.begin_ns, "right") - 1)
        part = slice(first, self.at_ns.searchsorted(window.end_ns, "left") + 1)
        at_ns = self.at_ns[part]
        return at_ns, at_ns.clip(window.begin_ns, window.end_ns), self.values[part]


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
        self._weights: list[tuple[Floats, Floats]] = []
        self._held = 0

    def add(self, samples: _Samples, window: Window) -> None:
        """Add a part of the window: a straight line between two samples."""
        inside = samples.inside(window)[:, 0]
        if len(inside):
            self.count, self.only = self.count + len(inside), float(inside[-1])
            self._reach(inside)
        at_ns, within_ns, values = samples.steps(window)
        if len(at_ns) < 2 or within_ns[-1] <= within_ns[0]:
            return
        level, spans = np.interp(within_ns, at_ns, values[:, 0]), np.diff(within_ns)
        first, last = level[:-1], level[1:]
        self.covered_ns += float(within_ns[-1] - within_ns[0])
        self.area += float((first + last) @ spans) / 2
        self.square += float((first * first + first * last + last * last) @ spans) / 3
        self._reach(level)
        self._weights.append((level, (np.append(spans, 0.0) + np.append(0.0, spans)) / 2))
        self._held += len(level)
        if self._held > 2 * _MOST_VALUES:
            self.weights()

    def _reach(self, values: Floats) -> None:
        self.least, self.most = min(self.least, float(values.min())), max(self.most, float(values.max()))

    def weights(self) -> dict[float, float]:
        """Time by value; it replaces what was held."""
        if not self._weights:
            return {}
        values, weights = map(np.concatenate, zip(*self._weights, strict=True))
        distinct, places = np.unique(values[weights > 0], return_inverse=True)
        if len(distinct) > _MOST_VALUES:
            rounded = np.array([float(f"{value:.3g}") for value in distinct.tolist()])
            distinct, places = np.unique(rounded[places], return_inverse=True)
        times = np.asarray(np.bincount(places, weights[weights > 0]), np.float64)
        self._weights, self._held = [(distinct, times)], len(distinct)
        return dict(zip(distinct.tolist(), times.tolist(), strict=True))

    def result(self) -> _Result:
        if not self.covered_ns and not self.count:
            return _Result()
        mean = self.area / self.covered_ns if self.covered_ns else self.only
        spread = self.square / self.covered_ns - mean * mean if self.covered_ns else 0.0
        std = math.sqrt(max(0.0, spread))
        stats = {"avg": mean, "min": self.least, "max": self.most, "std": std, "count": float(self.count)}
        return _Result(stats | by_weight(self.weights() or {self.only: 1.0}))


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
        self.grown = np.zeros(len(series.bounds) + 2 if series.kind is SeriesKind.HISTOGRAM else 1)

    def add(self, samples: _Samples, window: Window) -> None:
        self.count += len(samples.inside(window))
        at_ns, within_ns, values = samples.steps(window)
        if len(at_ns) < 2:
            return
        spans, increases = np.diff(within_ns), np.diff(values, axis=0)
        resets = increases[:, -1] < 0  # the last value of a histogram counts all observations
        self.covered_ns += float(spans.sum())
        self.resets += int(np.count_nonzero(resets & (spans > 0)))
        self.grown += (spans / np.diff(at_ns)) @ np.where(resets[:, None], values[1:], increases)

    def result(self) -> _Result:
        if not self.covered_ns:
            return _Result()
        seconds = self.covered_ns / 1e9
        resets = {"resets": float(self.resets)} if self.resets else {}
        total, *counts = self.grown.tolist()
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

    def add(self, series: SeriesHeader, samples: _Samples) -> None:
        """Samples, the last one of before among them."""
        first = bisect_right(self.begins, samples.at_ns[0]) - 1
        for number in range(max(0, first), bisect_right(self.begins, samples.at_ns[-1])):
            if self.windows[number].end_ns < samples.at_ns[0]:
                continue
            part = self.parts.get(number)
            if part is None:
                part = self.parts[number] = _PARTS.get(series.kind, _Level)(series)
            part.add(samples, self.windows[number])


class _SeriesFold:
    """One series: its last samples, and its level or growth by window, for each list of windows (phases, slices)."""

    def __init__(self, series: SeriesHeader, lists: Iterable[Sequence[Window]]) -> None:
        self.series = series
        self.lists = [_Windows(windows, [window.begin_ns for window in windows]) for windows in lists]
        self._at_ns: list[float] = []
        self._values: list[list[float]] = []
        self._carried = False

    def add(self, at_ns: float, value: Value) -> None:
        """Add a sample; one that isn't later than the one before is no news."""
        if self._at_ns and at_ns <= self._at_ns[-1]:
            return
        self._at_ns.append(at_ns)
        self._values.append(value if isinstance(value, list) else [value])
        if len(self._at_ns) > _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Fold the samples that wait; the last one stays as the begin of the next step."""
        if len(self._at_ns) > self._carried:
            samples = _Samples(np.array(self._at_ns, np.float64), np.array(self._values, np.float64), self._carried)
            for windows in self.lists:
                windows.add(self.series, samples)
            del self._at_ns[:-1], self._values[:-1]
            self._carried = True

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
    for fold in tracked.values():
        fold.flush()
    ref = origin.ref
    series = tuple(summary for fold in tracked.values() for _, summary in fold.summaries(ref.name, 0))
    by_slice: list[list[SeriesSummary]] = [[] for _ in slices]
    for fold in tracked.values():
        for number, summary in fold.summaries(ref.name, 1):
            by_slice[number].append(summary)
    about = ref.name, ref.distribution, ref.version, origin.interval_s, samples, failed, missed
    return SourceSummary(*about, series, tuple(map(tuple, by_slice)))
