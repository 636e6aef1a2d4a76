"""Folds samples over the phases of a run.

Between two samples a gauge is taken as a straight line, and a counter (each of a histogram's, too) as growing evenly, so the
result of a phase doesn't depend on the position of its edges between samples.  A counter that decreased has restarted at 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.telemetry.samples import FailedSample, Sample, SeriesHeader, SourceHeader, read_samples, sample_files


class Window(Struct, frozen=True):
    """A phase from *begin_ns* to *end_ns* of the monotonic clock."""

    phase: int
    begin_ns: float
    end_ns: float


class _Step(NamedTuple):
    """From one sample of a series to the next."""

    before: Sequence[float]
    after: Sequence[float]
    from_ns: int
    until_ns: int


class _Level:
    """A gauge over one window."""

    def __init__(self) -> None:
        self.count = 0
        self.least, self.most, self.only = math.inf, -math.inf, math.nan
        self.covered_ns = self.area = self.square = 0.0

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

    def result(self) -> tuple[dict[str, float], dict[str, float]]:
        """Statistics and buckets; both empty without samples."""
        if not self.covered_ns and not self.count:
            return {}, {}
        mean = self.area / self.covered_ns if self.covered_ns else self.only
        spread = self.square / self.covered_ns - mean * mean if self.covered_ns else 0.0
        std = math.sqrt(max(0.0, spread))
        return {"avg": mean, "min": self.least, "max": self.most, "std": std, "count": float(self.count)}, {}


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

    def result(self) -> tuple[dict[str, float], dict[str, float]]:
        if not self.covered_ns:
            return {}, {}
        seconds = self.covered_ns / 1e9
        resets = {"resets": float(self.resets)} if self.resets else {}
        total, *counts = self.grown
        if self.series.kind is SeriesKind.COUNTER:
            return {"total": total, "rate": total / seconds, "count": float(self.count), **resets}, {}
        observed = counts[-1]
        mean = {"avg": total / observed} if observed else {}
        buckets = dict(zip([*map(repr, self.series.bounds), "+Inf"], counts, strict=True))
        return {"count": observed, "sum": total, **mean, "rate": observed / seconds, **resets}, buckets


class _SeriesFold:
    """One series: its last sample, and its level or growth by window."""

    def __init__(self, series: SeriesHeader, windows: Sequence[Window]) -> None:
        self._series = series
        gauge = series.kind is SeriesKind.GAUGE
        self._parts = [(window, _Level() if gauge else _Growth(series)) for window in windows]
        self._last: tuple[int, Sequence[float]] | None = None

    def add(self, at_ns: int, value: float | list[float]) -> None:
        values = value if isinstance(value, list) else [value]
        step = None if self._last is None else _Step(self._last[1], values, self._last[0], at_ns)
        for window, part in self._parts:
            if window.begin_ns <= at_ns <= window.end_ns:
                part.at(values)
            if step is not None:
                begin_ns, end_ns = max(window.begin_ns, step.from_ns), min(window.end_ns, at_ns)
                if end_ns > begin_ns:
                    part.between(step, begin_ns, end_ns)
        self._last = at_ns, values

    def summaries(self, source: str) -> Iterable[SeriesSummary]:
        series = self._series
        about = series.name, series.kind.value, series.unit, series.labels, series.help
        for window, part in self._parts:
            stats, buckets = part.result()
            if stats:
                yield SeriesSummary(source, window.phase, *about, stats, buckets)


def telemetry(journal: Path, windows: Sequence[Window]) -> tuple[SourceSummary, ...]:
    """Summaries of the run's telemetry sources; empty without samples."""
    return tuple(filter(None, (_source(path, windows) for path in sample_files(journal))))


def _source(path: Path, windows: Sequence[Window]) -> SourceSummary | None:
    origin: SourceHeader | None = None
    tracked: dict[int, _SeriesFold] = {}
    samples = failed = missed = 0
    for line in read_samples(path):
        match line:
            case SourceHeader():
                origin = line
            case SeriesHeader():
                tracked[line.id] = _SeriesFold(line, windows)
            case Sample(moment, values):
                samples += 1
                missed += moment.missed
                for number, value in values.items():
                    tracked[number].add(moment.at_ns, value)
            case FailedSample():
                failed += 1
    if origin is None:
        return None
    ref = origin.ref
    series = tuple(summary for fold in tracked.values() for summary in fold.summaries(ref.name))
    return SourceSummary(ref.name, ref.distribution, ref.version, origin.interval_s, samples, failed, missed, series)
