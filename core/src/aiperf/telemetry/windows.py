"""Samples folded over the phases of a run.

Between two samples a gauge moves in a straight line, and a counter, or each of a histogram's, grows evenly: so what a phase
has of them doesn't depend on where its edges fall between samples.  A counter that went down has begun again at 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from aiperf.summary import SeriesSummary, SourceSummary
from aiperf.telemetry import SeriesKind
from aiperf.telemetry.samples import Failed, Origin, Sample, Series, read_samples, sample_files


class Window(Struct, frozen=True):
    """A phase: from *begin_ns* to *end_ns* of the monotonic clock."""

    phase: int
    begin_ns: float
    end_ns: float


class _Level:
    """A gauge over one window."""

    def __init__(self) -> None:
        self.count = 0
        self.least, self.most = math.inf, -math.inf
        self.covered_ns = self.area = self.square = 0.0
        self.only = math.nan

    def at(self, value: float) -> None:
        """A sample inside."""
        self.count += 1
        self.only = value
        self._bounds(value)

    def between(self, begin: float, end: float, covered_ns: float) -> None:
        """A straight line through a part of it."""
        self.covered_ns += covered_ns
        self.area += (begin + end) / 2 * covered_ns
        self.square += (begin * begin + begin * end + end * end) / 3 * covered_ns
        self._bounds(begin)
        self._bounds(end)

    def _bounds(self, value: float) -> None:
        self.least, self.most = min(self.least, value), max(self.most, value)

    def stats(self) -> dict[str, float]:
        if not self.covered_ns and not self.count:
            return {}
        mean = self.area / self.covered_ns if self.covered_ns else self.only
        spread = self.square / self.covered_ns - mean * mean if self.covered_ns else 0.0
        return {
            "avg": mean, "min": self.least, "max": self.most, "std": math.sqrt(max(0.0, spread)), "count": float(self.count),
        }  # fmt: skip


class _Growth:
    """Counters side by side over one window."""

    def __init__(self, width: int) -> None:
        self.count = self.resets = 0
        self.covered_ns = 0.0
        self.grown = [0.0] * width

    def between(self, increases: Sequence[float], share: float, covered_ns: float, reset: bool) -> None:
        self.covered_ns += covered_ns
        self.resets += reset
        self.grown = [total + each * share for total, each in zip(self.grown, increases, strict=True)]


class _Tracked:
    """One series: its last sample, and what each window has of it."""

    def __init__(self, series: Series, windows: Sequence[Window]) -> None:
        self.series = series
        self.gauge = series.kind is SeriesKind.GAUGE
        width = len(series.bounds) + 2 if series.kind is SeriesKind.HISTOGRAM else 1
        self.levels = [_Level() for _ in windows] if self.gauge else []
        self.growths = [] if self.gauge else [_Growth(width) for _ in windows]
        self._windows = windows
        self._at_ns = 0
        self._last: list[float] | None = None

    def add(self, at_ns: int, value: float | list[float]) -> None:
        values = value if isinstance(value, list) else [value]
        for i, window in enumerate(self._windows):
            if window.begin_ns <= at_ns <= window.end_ns:
                if self.gauge:
                    self.levels[i].at(values[0])
                else:
                    self.growths[i].count += 1
        if self._last is not None and at_ns > self._at_ns:
            for i, window in enumerate(self._windows):
                begin, end = max(window.begin_ns, self._at_ns), min(window.end_ns, at_ns)
                if end > begin:
                    self._between(i, self._last, values, begin, end, at_ns)
        self._at_ns, self._last = at_ns, values

    def _between(self, i: int, before: list[float], after: list[float], begin: float, end: float, at_ns: int) -> None:
        """The part of the way from the sample before to this one that lies in window *i*."""
        whole = at_ns - self._at_ns
        if self.gauge:
            slope = (after[0] - before[0]) / whole
            self.levels[i].between(
                before[0] + slope * (begin - self._at_ns), before[0] + slope * (end - self._at_ns), end - begin
            )
            return
        reset = after[-1] < before[-1]  # of a histogram the last is the count of all observations
        increases = after if reset else [late - early for early, late in zip(before, after, strict=True)]
        self.growths[i].between(increases, (end - begin) / whole, end - begin, reset)

    def summaries(self, source: str) -> Iterable[SeriesSummary]:
        for i, window in enumerate(self._windows):
            buckets: dict[str, float] = {}
            if self.gauge:
                stats = self.levels[i].stats()
            else:
                stats, buckets = self._grown(self.growths[i])
            if stats:
                series = self.series
                yield SeriesSummary(
                    source, window.phase, series.name, series.kind.value, series.unit, series.labels, series.help, stats,
                    buckets,
                )  # fmt: skip

    def _grown(self, growth: _Growth) -> tuple[dict[str, float], dict[str, float]]:
        if not growth.covered_ns:
            return {}, {}
        seconds = growth.covered_ns / 1e9
        found = {"resets": float(growth.resets)} if growth.resets else {}
        if self.series.kind is SeriesKind.COUNTER:
            (total,) = growth.grown
            return {"total": total, "rate": total / seconds, "count": float(growth.count), **found}, {}
        total, *counts = growth.grown
        observed = counts[-1]
        mean = {"avg": total / observed} if observed else {}
        bounds = [*map(repr, self.series.bounds), "+Inf"]
        return {"count": observed, "sum": total, **mean, "rate": observed / seconds, **found}, dict(
            zip(bounds, counts, strict=True)
        )


def telemetry(journal: Path, windows: Sequence[Window]) -> tuple[SourceSummary, ...]:
    """What the sources of a run sampled, by source and phase; none where nothing was sampled."""
    return tuple(filter(None, (_source(path, windows) for path in sample_files(journal))))


def _source(path: Path, windows: Sequence[Window]) -> SourceSummary | None:
    origin: Origin | None = None
    tracked: dict[int, _Tracked] = {}
    samples = failed = missed = 0
    for line in read_samples(path):
        match line:
            case Origin():
                origin = line
            case Series():
                tracked[line.id] = _Tracked(line, windows)
            case Sample(moment, values):
                samples += 1
                missed += moment.missed
                _add(tracked, moment.at_ns, values)
            case Failed():
                failed += 1
    if origin is None:
        return None
    ref = origin.ref
    series = tuple(each for one in tracked.values() for each in one.summaries(ref.name))
    return SourceSummary(ref.name, ref.distribution, ref.version, origin.interval_s, samples, failed, missed, series)


def _add(tracked: Mapping[int, _Tracked], at_ns: int, values: Mapping[int, float | list[float]]) -> None:
    for number, value in values.items():
        tracked[number].add(at_ns, value)
