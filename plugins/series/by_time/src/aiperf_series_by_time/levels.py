"""Gauges over windows: between two samples each is a straight line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from aiperf.sdk.columns import Floats, Ints
from aiperf_histograms import PERCENTILES
from numpy.typing import NDArray

from aiperf_series_by_time.percentiles import by_time
from aiperf_series_by_time.windows import UNSEEN, Finished, Place, WindowResult, Windows

_LEAST_VALUES, _MOST_VALUES, _MOST_HELD = 1024, 4096, 1 << 20
"""Distinct values of a gauge in a window; with more, percentiles are those of values with three digits.  Together the gauges of
a source have _MOST_HELD: each has its share of them, within these limits."""
_WAITING = 1 << 16
"""Values that wait to be sorted."""
_Owners: TypeAlias = NDArray[np.uint16 | np.uint32]
"""Places of gauges; up to 65,536 take little room, and are sorted by their digits."""
_COUNT, _ONLY, _LEAST, _MOST, _COVERED, _AREA, _SQUARE, _BASE = range(8)
_EMPTY = np.array([0, math.nan, math.inf, -math.inf, 0, 0, 0, math.nan])
STATISTICS = ("avg", "min", "max", "std", "count", *(f"p{percent}" for percent in PERCENTILES))


class _Times:
    """The time that each gauge spent at each value, twice."""

    def __init__(self) -> None:
        self._parts: list[tuple[_Owners, Floats, Ints]] = [(np.zeros(0, np.uint16), np.zeros(0), np.zeros(0, np.int64))]
        self._sorted = self._waiting = 0
        self._still, self._still_ns = np.zeros(0), np.zeros(0, np.int64)
        """The value at which each gauge stands, and the time that isn't in the parts yet."""

    def grow(self, count: int) -> None:
        self._still = np.concatenate([self._still, np.zeros(count)])
        self._still_ns = np.concatenate([self._still_ns, np.zeros(count, np.int64)])

    def add(self, slots: Ints, values: Floats, times: Ints) -> None:
        owners: _Owners = slots.astype(np.uint16 if len(self._still) <= 1 << 16 else np.uint32)
        self._parts.append((owners, values, times))
        self._waiting += len(slots)

    def stay(self, slots: Ints, values: Floats, times: Ints) -> None:
        """Add time at a value that doesn't change; most gauges have many samples with one."""
        moved = self._still[slots] != values
        self._leave(slots[moved])
        self._still[slots] = values
        self._still_ns[slots] += 2 * times

    def _leave(self, slots: Ints) -> None:
        slots = slots[self._still_ns[slots] > 0]
        if len(slots):
            self.add(slots, self._still[slots], self._still_ns[slots])
            self._still_ns[slots] = 0

    def settle(self, gauges: int) -> None:
        """Sort what waits, once it is much."""
        if self._waiting > max(_WAITING, self._sorted // 4):
            self._merge(gauges)

    def take(self, slots: Ints, gauges: int) -> Floats:
        """The percentiles of the gauges in *slots*, a column each; they begin anew."""
        self._leave(slots)
        owners, values, times = self._merge(gauges)
        columns = np.full(gauges, -1)
        columns[slots] = np.arange(len(slots))
        column = columns[owners]
        taken = column >= 0
        self._keep(owners[~taken], values[~taken], times[~taken])
        order = column[taken].argsort(kind="stable")
        return by_time(column[taken][order], values[taken][order], times[taken][order], len(slots))

    def _keep(self, owners: _Owners, values: Floats, times: Ints) -> None:
        self._parts, self._sorted, self._waiting = [(owners, values, times)], len(owners), 0

    def _merge(self, gauges: int) -> tuple[_Owners, Floats, Ints]:
        """All values in order, each once; those of a gauge that has too many are rounded."""
        owners, values, times = _summed(*map(np.concatenate, zip(*self._parts, strict=True)))
        most = max(_LEAST_VALUES, min(_MOST_VALUES, _MOST_HELD // gauges))
        if len(owners) > most and (many := np.bincount(owners, minlength=gauges) > most).any():
            owners, values, times = _summed(owners, np.where(many[owners], _three_digits(values), values), times)
        self._keep(owners, values, times)
        return owners, values, times


def _summed(owners: _Owners, values: Floats, times: Ints) -> tuple[_Owners, Floats, Ints]:
    """In the order of owners and values, each pair once with all its time."""
    order = values.argsort()
    order = order[owners[order].argsort(kind="stable")]
    owners, values, times = owners[order], values[order], times[order]
    first = np.flatnonzero(np.append(True, (np.diff(owners) != 0) | (np.diff(values) != 0))[: len(owners)])
    return owners[first], values[first], np.add.reduceat(times, first) if len(first) else times


def _three_digits(values: Floats) -> Floats:
    exponents = np.floor(np.log10(np.abs(values), where=values != 0, out=np.zeros_like(values))) - 2
    up, down = 10.0 ** np.maximum(exponents, 0), 10.0 ** np.maximum(-exponents, 0)  # one of them is 1
    return np.asarray(np.rint(values / up * down) / down * up)


class _Tally:
    """The gauges in their present windows of one list."""

    def __init__(self, windows: Windows) -> None:
        self.place = Place(windows)
        self.state = np.zeros((len(_EMPTY), 0))
        self.times = _Times()

    def grow(self, count: int) -> None:
        self.place.grow(count)
        self.state = np.concatenate([self.state, np.tile(_EMPTY[:, None], count)], axis=1)
        self.times.grow(count)

    def seen(self, slots: Ints, values: Floats) -> None:
        """Count samples within the windows."""
        self.state[_COUNT, slots] += 1
        self.state[_ONLY, slots] = values
        self._reach(slots, values, values)

    def line(self, slots: Ints, first: Floats, last: Floats, times: Ints) -> None:
        """Add straight lines within the windows, from value *first* to *last*."""
        state = self.state
        self._reach(slots, np.minimum(first, last), np.maximum(first, last))
        base = state[_BASE, slots]
        base = state[_BASE, slots] = np.where(np.isnan(base), first, base)  # sums of differences keep their digits
        low, high = first - base, last - base
        state[_COVERED, slots] += times
        state[_AREA, slots] += (low + high) * times / 2
        state[_SQUARE, slots] += (low * low + low * high + high * high) * times / 3
        still = first == last
        self.times.stay(slots[still], first[still], times[still])
        if not still.all():
            self.times.add(slots[~still], first[~still], times[~still])
            self.times.add(slots[~still], last[~still], times[~still])
        self.times.settle(state.shape[1])

    def finish(self, slots: Ints) -> Iterator[Finished]:
        """The statistics of the gauges in *slots*, which begin anew; nothing for those without samples."""
        slots = slots[(self.state[_COUNT, slots] > 0) | (self.state[_COVERED, slots] > 0)]
        if not len(slots):
            return
        count, only, least, most, covered, area, square, base = self.state[:, slots]
        lines = covered > 0
        divisor = np.where(lines, covered, 1.0)
        lean = area / divisor
        mean, std = np.where(lines, base + lean, only), np.sqrt(np.maximum(0.0, square / divisor - lean * lean))
        percentiles = self.times.take(slots, self.state.shape[1])
        table = np.array([mean, least, most, np.where(lines, std, 0.0), count, *np.where(lines, percentiles, only)])
        self.state[:, slots] = _EMPTY[:, None]
        results = [WindowResult(dict(zip(STATISTICS, row, strict=True))) for row in table.T.tolist()]
        yield Finished(slots, self.place.numbers[slots], results)

    def _reach(self, slots: Ints, least: Floats, most: Floats) -> None:
        self.state[_LEAST, slots] = np.minimum(self.state[_LEAST, slots], least)
        self.state[_MOST, slots] = np.maximum(self.state[_MOST, slots], most)


class Levels:
    """Gauges side by side, over several lists of windows."""

    def __init__(self, lists: Sequence[Windows]) -> None:
        self._tallies = [_Tally(windows) for windows in lists]
        self._at_ns, self._values = np.zeros(0, np.int64), np.zeros(0)
        self._ended = np.zeros(0, bool)

    def __len__(self) -> int:
        return len(self._at_ns)

    def grow(self, count: int) -> None:
        self._at_ns = np.concatenate([self._at_ns, np.full(count, UNSEEN)])
        self._values = np.concatenate([self._values, np.zeros(count)])
        self._ended = np.concatenate([self._ended, np.zeros(count, bool)])
        for tally in self._tallies:
            tally.grow(count)

    def end(self, slots: list[int]) -> None:
        """These have no value until their next sample: no line leads there."""
        self._ended[slots] = True

    def take(self, slots: Ints, at_ns: Ints, values: Floats) -> Iterator[tuple[int, Finished]]:
        """Add a sample of each of *slots*; gives the windows that are over, by list.  One that isn't later is no news."""
        if not (news := at_ns > self._at_ns[slots]).all():
            slots, at_ns, values = slots[news], at_ns[news], values[news]
        fresh = self._at_ns[slots] == UNSEEN
        before_ns, before = np.where(fresh, at_ns, self._at_ns[slots]), np.where(fresh, values, self._values[slots])
        for number, tally in enumerate(self._tallies):
            for steps in tally.place.walk(slots, before_ns, at_ns, fresh):
                mine = slots[steps.part]
                if steps.inside.any():
                    tally.seen(mine[steps.inside], values[steps.part[steps.inside]])
                if (lines := (steps.high_ns > steps.low_ns) & ~self._ended[mine]).any():
                    part = steps.part[lines]
                    edges = steps.low_ns[lines], steps.high_ns[lines]
                    first, last = _between(before_ns[part], at_ns[part], before[part], values[part], edges)
                    tally.line(mine[lines], first, last, edges[1] - edges[0])
                for finished in tally.finish(mine[steps.over]):
                    yield number, finished
        self._at_ns[slots], self._values[slots], self._ended[slots] = at_ns, values, False

    def close(self) -> Iterator[tuple[int, Finished]]:
        """What there is of the windows that are not over."""
        for number, tally in enumerate(self._tallies):
            for finished in tally.finish(np.arange(len(self))):
                yield number, finished


def _between(
    begin_ns: Ints, end_ns: Ints, first: Floats, last: Floats, edges: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    """The values of straight lines at two instants each."""
    low_ns, high_ns = edges
    slope = (last - first) / (end_ns - begin_ns)
    at_low = np.where(low_ns == begin_ns, first, first + slope * (low_ns - begin_ns))
    at_high = np.where(high_ns == end_ns, last, first + slope * (high_ns - begin_ns))
    return at_low, at_high
