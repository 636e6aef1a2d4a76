"""Folds the samples of one source over phases and time slices, all series side by side, in one pass that holds few samples.

Between two samples a gauge is a straight line, and a counter (each of a histogram's, too) grows evenly, so the result of a
phase doesn't depend on the position of its edges between samples.  What is held of a series does not grow with
samples or slices.  A sample has the values that changed, and is folded as if it had all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.series import FailedSample, Line, Sample, SeriesHeader, Value
from aiperf.sdk.telemetry import SeriesKind
from msgspec import Struct

from aiperf_series_by_time.growths import Bounds, Growths
from aiperf_series_by_time.levels import Levels
from aiperf_series_by_time.tallies import Tallies
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


_LEVELS, _FLOWS, _STEPS = range(3)
"""Ways of folding: gauges, counters that flow by themselves, and those that grow with requests."""


class _Target:
    """The series of a target that have a value now: by way, a place for each, and of all in turn."""

    def __init__(self) -> None:
        self.present: set[int] = set()
        self.slots: tuple[Ints, Ints, Ints] | None = None
        """Places of the present series, until others are present."""


class Fold:
    """Takes the lines of a source's samples in their order, and gives *emit* what is over.

    phases, slices: their windows; more may be added, and the last ones ended, while no line has a later time.
    known: how many slices there are, where that is known.
    """

    def __init__(self, emit: Callable[[list[Part]], None], phases: Windows, slices: Windows, known: int = 0) -> None:
        self._emit, self._known = emit, known
        self.series: list[SeriesHeader] = []
        self.tallies = Tallies(phases)
        self.latest_ns = UNSEEN
        """The latest time of a value."""
        lists = phases, slices
        self._levels, self._flows, self._steps = Levels(lists), Growths(lists), Growths(lists, phases)
        self._values: tuple[Floats, ...] = np.zeros(0), np.zeros(0), np.zeros(0)
        """By way, the present value of each series; of a histogram, all of them."""
        self._targets: dict[int, _Target] = {}
        self._places: list[tuple[int, int, int]] = []
        """By series: the way of folding, the place there, and the place of its first value."""
        self._numbers: tuple[list[int], list[int], list[int]] = [], [], []
        self._new: list[SeriesHeader] = []

    def take(self, line: Line) -> None:
        match line:
            case SeriesHeader():
                self._new.append(line)
            case Sample():
                self._grow()
                with np.errstate(over="ignore", invalid="ignore"):
                    self._sample(line)
            case FailedSample():
                self.tallies.fail(line)

    def close(self) -> None:
        """Give what there is of windows that are not over."""
        ways: tuple[Levels | Growths, ...] = self._levels, self._flows, self._steps
        for way, fold in enumerate(ways):
            for which, finished in fold.close():
                self._tell(way, which, finished)

    def _grow(self) -> None:
        """Make room for the series whose headers came since the last sample."""
        if not self._new:
            return
        bounds: tuple[list[Bounds], ...] = [], [], []
        widths = [len(values) for values in self._values]
        for series in self._new:
            growing = series.kind in (SeriesKind.COUNTER, SeriesKind.HISTOGRAM)
            way = _LEVELS if not growing else _FLOWS if series.flows else _STEPS
            self._places.append((way, len(self._numbers[way]), widths[way]))
            self._numbers[way].append(series.id)
            bounds[way].append(series.bounds if series.kind is SeriesKind.HISTOGRAM else None)
            widths[way] += len(series.bounds) + 2 if series.kind is SeriesKind.HISTOGRAM else 1
        self._levels.grow(len(bounds[_LEVELS]))
        self._flows.grow(bounds[_FLOWS])
        self._steps.grow(bounds[_STEPS])
        more = (np.append(old, np.zeros(width - len(old))) for old, width in zip(self._values, widths, strict=True))
        self._values = tuple(more)
        self.series += self._new
        self._new = []

    def _sample(self, sample: Sample) -> None:
        """Fold a value of each series of the target, and those with times of their own."""
        moment, target = sample.moment, self._targets.setdefault(sample.target, _Target())
        self._end(target, {*sample.ended, *(target.present.difference(sample.values) if sample.whole else ())})
        changed = grown = False
        for number, value in sample.values.items():
            way, _, place = self._places[number]
            news = self._put(way, place, value)
            changed |= news
            grown |= news and way == _STEPS
        if not target.present.issuperset(sample.values):
            target.present.update(sample.values)
            target.slots, changed = None, True
        if target.slots is None:
            target.slots = self._slots(target.present)
        changed |= bool(sample.ended or sample.timed)
        self.tallies.take(sample, changed=changed, grown=grown, counts=len(target.slots[_STEPS]) > 0)
        for way, slots in enumerate(target.slots):
            self._fold(way, slots, np.full(len(slots), moment.at_ns))
        left = sample.timed
        while left:
            left = self._timed(left, moment.at_ns - moment.wall_ns)

    def _end(self, target: _Target, ended: set[int]) -> None:
        if ended:
            target.present -= ended
            target.slots = None
            self._levels.end([place for way, place, _ in map(self._places.__getitem__, ended) if way == _LEVELS])

    def _put(self, way: int, place: int, value: Value) -> bool:
        """Set the present value of a series; whether it is another one."""
        values = self._values[way]
        if not isinstance(value, list):
            if values[place] == value:
                return False
            values[place] = value
            return True
        part = values[place : place + len(value)]
        if part.tolist() == value:
            return False
        part[:] = value
        return True

    def _slots(self, numbers: Iterable[int]) -> tuple[Ints, Ints, Ints]:
        """By way, the places of these series."""
        slots: tuple[list[int], list[int], list[int]] = [], [], []
        for number in sorted(numbers):
            way, slot, _ = self._places[number]
            slots[way].append(slot)
        levels, flows, steps = (np.array(each, np.int64) for each in slots)
        return levels, flows, steps

    def _fold(self, way: int, slots: Ints, at_ns: Ints) -> None:
        """Fold the present values of the series in these places."""
        if not len(slots):
            return
        self.latest_ns = max(self.latest_ns, int(at_ns.max()))
        if way == _LEVELS:
            finished = self._levels.take(slots, at_ns, self._values[way][slots])
        else:
            growths = self._flows if way == _FLOWS else self._steps
            finished = growths.take(slots, at_ns, self._values[way][growths.counters(slots)])
        for which, each in finished:
            self._tell(way, which, each)

    def _timed(self, timed: list[tuple[int, int, Value]], offset_ns: int) -> list[tuple[int, int, Value]]:
        """Fold the first value of each series at its own time; gives the others."""
        turn, left = dict[int, int](), list[tuple[int, int, Value]]()
        for each in timed:
            number, wall_ns, value = each
            if number in turn:
                left.append(each)
                continue
            turn[number] = wall_ns + offset_ns
            way, _, place = self._places[number]
            self._put(way, place, value)
        for way, slots in enumerate(self._slots(turn)):
            own = self._numbers[way]
            self._fold(way, slots, np.array([turn[own[slot]] for slot in slots.tolist()], np.int64))
        return left

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
