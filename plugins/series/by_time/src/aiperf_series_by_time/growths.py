"""Counters over windows: each grows evenly between two samples, and one that decreased has begun again at 0.

A counter of requests doesn't grow between two phases: what it has grown from the last sample before a phase to the last one
before the next phase is that phase's.  A counter that flows by itself goes on between phases.

A histogram is several counters side by side, the sum of the observations and their counts by bucket; the last one, which counts
all of them, tells whether they have begun again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from aiperf.sdk.columns import Floats, Ints
from aiperf_histograms import of_histogram

from aiperf_series_by_time.windows import UNSEEN, Finished, Mask, Place, Steps, WindowResult, Windows

Bounds: TypeAlias = tuple[float, ...] | None
"""Of a histogram, without the infinite one; None: a counter."""
_COUNT, _RESETS, _COVERED = range(3)


class _Tally:
    """The counters in their present windows of one list.  *grown*: by counter, the others by series."""

    def __init__(self, windows: Windows, phases: Windows | None) -> None:
        self.place = Place(windows, phases)
        self.whole = windows is phases
        self.state, self.grown = np.zeros((3, 0)), np.zeros(0)

    def grow(self, count: int, counters: int) -> None:
        self.place.grow(count)
        self.state = np.concatenate([self.state, np.zeros((3, count))], axis=1)
        self.grown = np.concatenate([self.grown, np.zeros(counters)])


class Growths:
    """Counters and histograms side by side, over several lists of windows.  phases: of those that don't flow, their phases."""

    def __init__(self, lists: Sequence[Windows], phases: Windows | None = None) -> None:
        self._tallies = [_Tally(windows, phases) for windows in lists]
        self._at_ns, self._values = np.zeros(0, np.int64), np.zeros(0)
        self._first = self._widths = np.zeros(0, np.int64)
        self._bounds: list[Bounds] = []

    def __len__(self) -> int:
        return len(self._at_ns)

    def grow(self, bounds: Sequence[Bounds]) -> None:
        """Add series."""
        widths = [1 if each is None else len(each) + 2 for each in bounds]
        counters = sum(widths)
        self._bounds += bounds
        self._widths = np.append(self._widths, np.array(widths, np.int64))
        self._first = np.cumsum(self._widths) - self._widths
        self._at_ns = np.concatenate([self._at_ns, np.full(len(widths), UNSEEN)])
        self._values = np.concatenate([self._values, np.zeros(counters)])
        for tally in self._tallies:
            tally.grow(len(widths), counters)

    def take(self, slots: Ints, at_ns: Ints, values: Floats) -> Iterator[tuple[int, Finished]]:
        """Add a sample of each of *slots*, all counters in turn; gives the windows that are over, by list."""
        if not (news := at_ns > self._at_ns[slots]).all():
            values = values[np.repeat(news, self._widths[slots])]
            slots, at_ns = slots[news], at_ns[news]
        if not len(slots):
            return
        widths, counters = self._widths[slots], self.counters(slots)
        fresh = self._at_ns[slots] == UNSEEN
        before_ns = np.where(fresh, at_ns, self._at_ns[slots])
        before = np.where(np.repeat(fresh, widths), values, self._values[counters])
        increases = values - before
        resets = increases[np.cumsum(widths) - 1] < 0
        increases = np.where(np.repeat(resets, widths), values, increases)
        for number, tally in enumerate(self._tallies):
            low_ns, high_ns = tally.place.time(before_ns), tally.place.time(at_ns)
            if tally.place.by_phase:
                low_ns = np.where(high_ns > 0, np.maximum(low_ns, 0), low_ns)
            for steps in tally.place.walk(slots, low_ns, high_ns, fresh):
                known = tally.place.by_phase & (tally.state[_COVERED, slots[steps.part]] > 0)
                share = _shares(steps, (high_ns - low_ns)[steps.part], known)
                self._add(tally, steps, slots, resets, share, at_ns - before_ns)
                if (lines := share > 0).any():
                    part = steps.part[lines]
                    places = _ranges((np.cumsum(widths) - widths)[part], widths[part])
                    tally.grown[counters[places]] += np.repeat(share[lines], widths[part]) * increases[places]
                for finished in self._finish(tally, slots[steps.part[steps.over]]):
                    yield number, finished
        self._at_ns[slots], self._values[counters] = at_ns, values

    def close(self) -> Iterator[tuple[int, Finished]]:
        """What there is of the windows that are not over."""
        for number, tally in enumerate(self._tallies):
            for finished in self._finish(tally, np.arange(len(self))):
                yield number, finished

    @staticmethod
    def _add(tally: _Tally, steps: Steps, slots: Ints, resets: Mask, share: Floats, took_ns: Ints) -> None:
        """Count samples, resets and the time of the growth: of a whole phase, from sample to sample."""
        mine = slots[steps.part]
        spans = share * took_ns[steps.part] if tally.whole else np.maximum(0, steps.high_ns - steps.low_ns)
        tally.state[_COUNT, mine] += steps.inside
        tally.state[_RESETS, mine] += resets[steps.part] & (share > 0)
        tally.state[_COVERED, mine] += spans

    def counters(self, slots: Ints) -> Ints:
        """The places of all values of these series."""
        return _ranges(self._first[slots], self._widths[slots])

    def _finish(self, tally: _Tally, slots: Ints) -> Iterator[Finished]:
        """The increases of the series in *slots*, which begin anew; nothing for those with fewer than two samples."""
        known = slots[tally.state[_COVERED, slots] > 0]
        if len(known):
            grown = np.split(tally.grown[self.counters(known)], np.cumsum(self._widths[known])[:-1])
            states, bounds = tally.state[:, known].T.tolist(), [self._bounds[slot] for slot in known.tolist()]
            columns = zip(bounds, states, grown, strict=True)
            results = [_result(each, *state, *values.tolist()) for each, state, values in columns]
            yield Finished(known, tally.place.numbers[known], results)
        tally.state[:, slots] = 0
        tally.grown[self.counters(slots)] = 0


def _result(bounds: Bounds, count: float, resets: float, covered_ns: float, total: float, *counts: float) -> WindowResult:
    """For a counter its growth *total*; of a histogram the sum *total* of observations, how many were at most each bound."""
    seconds = covered_ns / 1e9
    again = {"resets": resets} if resets else {}
    if bounds is None:
        return WindowResult({"total": total, "rate": total / seconds, "count": count, **again})
    observed = counts[-1]
    mean = {"avg": total / observed} if observed else {}
    buckets = dict(zip([*map(repr, bounds), "+Inf"], counts, strict=True))
    stats = {"count": observed, "sum": total, **mean, "rate": observed / seconds, **again}
    return WindowResult(stats, buckets, of_histogram(bounds, counts, total))


def _shares(steps: Steps, lengths: Ints, known: Mask) -> Floats:
    """Which part of its growth each step of this length has within its window.

    A step without a length is behind the end of a phase: its growth is that of the window, if that is *known*.
    """
    parts = np.maximum(0, steps.high_ns - steps.low_ns)
    return np.where(lengths > 0, parts / np.maximum(lengths, 1), known & steps.inside)


def _ranges(firsts: Ints, widths: Ints) -> Ints:
    """The numbers from each of *firsts* on, so many of each, in turn."""
    return np.repeat(firsts - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
