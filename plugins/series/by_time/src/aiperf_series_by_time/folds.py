"""Folds the samples of one source over phases and time slices, all series side by side, in one pass that holds few samples.

Between two samples a gauge is a straight line, and a counter (each of a histogram's, too) grows evenly, so the result of a
phase doesn't depend on the position of its edges between samples.  What is held of a series does not grow with
samples or slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from aiperf.sdk.columns import Ints
from aiperf.sdk.series import FailedSample, Line, Sample, SeriesHeader, Value
from aiperf.sdk.telemetry import SeriesKind
from msgspec import Struct

from aiperf_series_by_time.growths import Bounds, Growths
from aiperf_series_by_time.levels import Levels
from aiperf_series_by_time.windows import UNSEEN, Finished, WindowResult, Windows

MOST_PARTS = 200_000
"""Series times slices of one source; series beyond have no slices."""
PHASES, SLICES = range(2)


class Part(Struct, frozen=True, array_like=True):
    """A series over one window, by its number in the list of phases or, if *sliced*, of slices."""

    series: int
    window: int
    sliced: bool
    stats: dict[str, float]
    buckets: dict[str, float] = {}
    estimates: dict[str, float] = {}


def most_sliced(slices: int) -> int:
    """How many of the first series have time slices, with so many slices."""
    return MOST_PARTS // max(1, slices)


class _Layout(NamedTuple):
    """Where the values of these series go: those of gauges and those of counters, by their positions, and the places there."""

    numbers: list[int]
    positions: tuple[list[int], list[int]]
    slots: tuple[Ints, Ints]


_LEVELS, _GROWTHS = range(2)


class Fold:
    """Takes the lines of a source's samples in their order, and gives *emit* what is over.

    phases, slices: their windows; more may be added, and the last ones ended, while no line has a later time.
    known: how many slices there are, where that is known.
    """

    def __init__(self, emit: Callable[[list[Part]], None], phases: Windows, slices: Windows, known: int = 0) -> None:
        self._emit, self._known = emit, known
        self.series: list[SeriesHeader] = []
        self.samples = self.failed = self.missed = 0
        self.last_ns = self.latest_ns = UNSEEN
        """The time of the last sample that was taken or failed, and the latest time of a value."""
        self._levels, self._growths = Levels((phases, slices)), Growths((phases, slices))
        self._places: list[tuple[int, int]] = []
        """By series: the way of folding, and the place there."""
        self._numbers: tuple[list[int], list[int]] = [], []
        self._new: list[SeriesHeader] = []
        self._layout = self._laid_out([])

    def take(self, line: Line) -> None:
        match line:
            case SeriesHeader():
                self._new.append(line)
            case Sample(moment):
                self.samples += 1
                self.missed += moment.missed
                self.last_ns = moment.at_ns
                self._grow()
                with np.errstate(over="ignore", invalid="ignore"):
                    for numbers, at_ns, values in _rounds(line):
                        self._fold(numbers, at_ns, values)
            case FailedSample(at_ns):
                self.failed += 1
                self.last_ns = at_ns

    def close(self) -> None:
        """Give what there is of windows that are not over."""
        for which, finished in self._levels.close():
            self._tell(_LEVELS, which, finished)
        for which, finished in self._growths.close():
            self._tell(_GROWTHS, which, finished)

    def _grow(self) -> None:
        """Make room for the series whose headers came since the last sample."""
        bounds: list[Bounds] = []
        levels = len(self._levels)
        for series in self._new:
            growing = series.kind in (SeriesKind.COUNTER, SeriesKind.HISTOGRAM)
            way = _GROWTHS if growing else _LEVELS
            self._places.append((way, len(self._numbers[way])))
            self._numbers[way].append(series.id)
            if growing:
                bounds.append(series.bounds if series.kind is SeriesKind.HISTOGRAM else None)
        self._levels.grow(len(self._numbers[_LEVELS]) - levels)
        self._growths.grow(bounds)
        self.series += self._new
        self._new = []

    def _fold(self, numbers: list[int], at_ns: Ints, values: list[Value]) -> None:
        """Fold a value of each of these series."""
        if not numbers:
            return
        self.latest_ns = max(self.latest_ns, int(at_ns.max()))
        layout = self._layout
        if layout.numbers != numbers:  # samples mostly have the same series in the same order
            layout = self._layout = self._laid_out(numbers)
        (levels, growths), slots = layout.positions, layout.slots
        if levels:
            column = np.array([values[position] for position in levels], np.float64)
            for which, finished in self._levels.take(slots[_LEVELS], at_ns[levels], column):
                self._tell(_LEVELS, which, finished)
        if growths:
            flat: list[float] = []
            for position in growths:
                value = values[position]
                flat += value if isinstance(value, list) else (value,)
            for which, finished in self._growths.take(slots[_GROWTHS], at_ns[growths], np.array(flat, np.float64)):
                self._tell(_GROWTHS, which, finished)

    def _laid_out(self, numbers: list[int]) -> _Layout:
        positions: tuple[list[int], list[int]] = [], []
        slots: tuple[list[int], list[int]] = [], []
        for position, number in enumerate(numbers):
            way, slot = self._places[number]
            positions[way].append(position)
            slots[way].append(slot)
        return _Layout(numbers, positions, (np.array(slots[_LEVELS], np.int64), np.array(slots[_GROWTHS], np.int64)))

    def _tell(self, way: int, which: int, finished: Finished) -> None:
        """Emit the finished windows of series that may have slices."""
        numbers, parts = self._numbers[way], list[Part]()
        for slot, window, result in zip(finished.slots.tolist(), finished.numbers.tolist(), finished.results, strict=True):
            series = self.series[numbers[slot]]
            stats = _shown(series, result)
            if stats and (which == PHASES or series.id < most_sliced(max(window + 1, self._known))):
                parts.append(Part(series.id, window, which == SLICES, stats, result.buckets, result.estimates))
        if parts:
            self._emit(parts)


def _shown(series: SeriesHeader, result: WindowResult) -> dict[str, float]:
    """All statistics; of an info, the number of samples alone."""
    if series.kind is not SeriesKind.INFO:
        return result.stats
    return {"count": result.stats["count"]} if result.stats["count"] else {}


def _rounds(sample: Sample) -> Iterator[tuple[list[int], Ints, list[Value]]]:
    """Series, times and values of a sample in their order; a series that has several stands once in each round."""
    moment = sample.moment
    yield list(sample.values), np.full(len(sample.values), moment.at_ns), list(sample.values.values())
    left = sample.timed
    while left:
        turn = {number: (wall_ns, value) for number, wall_ns, value in reversed(left)}  # the first of each series
        walls, values = zip(*turn.values(), strict=True)
        yield list(turn), np.array(walls, np.int64) + (moment.at_ns - moment.wall_ns), list(values)
        if len(turn) == len(left):
            return
        left = _without_first(left)


def _without_first(timed: list[tuple[int, int, Value]]) -> list[tuple[int, int, Value]]:
    seen: set[int] = set()
    left = []
    for each in timed:
        if each[0] in seen:
            left.append(each)
        seen.add(each[0])
    return left
