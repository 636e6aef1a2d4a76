"""Windows of time over which series are folded, where each series is among them, and the time in which phases run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from aiperf.sdk.columns import Ints
from aiperf.sdk.series import Window
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
UNSEEN = np.iinfo(np.int64).min


class Windows:
    """Edges of windows in the order of time, which don't overlap; one more stands behind them, which no sample reaches."""

    def __init__(self, windows: Iterable[Window] = ()) -> None:
        self.begins = self.ends = np.array([NEVER])
        edges = np.array([(each.begin_ns, each.end_ns) for each in windows], np.int64).reshape(-1, 2)
        self.append(edges[:, 0], edges[:, 1])

    def __len__(self) -> int:
        return len(self.begins) - 1

    def elapsed(self, at_ns: Ints) -> Ints:
        """How long windows had run by these instants; -1 before the first one.  The time between two windows is none."""
        begun = self.begins.searchsorted(at_ns) - 1
        lengths = np.append(0, np.cumsum((self.ends - self.begins)[:-1]))
        inside = np.minimum(at_ns, self.ends[begun]) - self.begins[begun]
        return np.where(begun < 0, -1, lengths[begun] + inside)

    def all(self, phase: int) -> list[Window]:
        """Windows of that phase with these edges."""
        return [Window(phase, *edges) for edges in zip(self.begins[:-1].tolist(), self.ends[:-1].tolist(), strict=True)]

    def append(self, begins: Ints, ends: Ints) -> None:
        self.begins = np.concatenate([self.begins[:-1], begins, [NEVER]])
        self.ends = np.concatenate([self.ends[:-1], ends, [NEVER]])

    def finish(self, first: int, end_ns: int) -> None:
        """The windows from number *first* on end by *end_ns*; those that would begin by then are dropped, but not the first."""
        last = max(first, int(self.begins[:-1].searchsorted(end_ns)) - 1)
        self.begins = np.append(self.begins[: last + 1], NEVER)
        self.ends = np.append(np.minimum(self.ends[: last + 1], end_ns), NEVER)


class Steps(NamedTuple):
    """Steps of series in one window each.

    part: which of the steps.  numbers: of the windows.  low_ns, high_ns: the step's part within the window, empty where
    high isn't later than low.  inside: whether the sample itself is in the window.  over: whether the window is over with it.
    """

    part: Ints
    numbers: Ints
    low_ns: Ints
    high_ns: Ints
    inside: Mask
    over: Mask


class WindowResult(NamedTuple):
    """What is known of a series in one window, as :class:`aiperf.sdk.summary.SeriesSummary` has it."""

    stats: dict[str, float]
    buckets: dict[str, float] = {}
    estimates: dict[str, float] = {}


class Finished(NamedTuple):
    """Series whose windows are over: their places among those of their way of folding, the windows' numbers, the results."""

    slots: Ints
    numbers: Ints
    results: list[WindowResult]


class Place:
    """The window in which each series is; a series never goes back.

    phases: time is what the phases ran, and a window is over behind its end alone: the samples between two phases stand at
    the end of the earlier one.  None: time is that of the clock.
    """

    def __init__(self, windows: Windows, phases: Windows | None = None) -> None:
        self.windows, self._phases = windows, phases
        self.numbers = np.zeros(0, np.int64)

    def grow(self, count: int) -> None:
        self.numbers = np.concatenate([self.numbers, np.zeros(count, np.int64)])

    @property
    def by_phase(self) -> bool:
        """Whether time is that of the phases."""
        return self._phases is not None

    def time(self, at_ns: Ints) -> Ints:
        return at_ns if self._phases is None else np.where(at_ns == NEVER, NEVER, self._phases.elapsed(at_ns))

    def walk(self, slots: Ints, before_ns: Ints, at_ns: Ints, fresh: Mask) -> Iterator[Steps]:
        """The steps of the series in *slots*, each from *before_ns* to *at_ns*, window by window; *fresh*: first samples.

        All times, here and in what it gives, are those of :meth:`time`.
        """
        windows = self.windows
        if not len(windows):
            return
        if fresh.any():
            ends = self.time(windows.ends[:-1])
            self.numbers[slots[fresh]] = ends.searchsorted(at_ns[fresh])
        part = np.arange(len(slots))
        while len(part):
            numbers, now_ns = self.numbers[slots[part]], at_ns[part]
            begins, ends = self.time(windows.begins[numbers]), self.time(windows.ends[numbers])
            if self._phases is None:
                inside, over = (begins <= now_ns) & (now_ns <= ends), ends <= now_ns
            else:
                begins = np.maximum(begins, 0)
                inside, over = (begins < now_ns) & (now_ns <= ends), ends < now_ns
            yield Steps(part, numbers, np.maximum(before_ns[part], begins), np.minimum(now_ns, ends), inside, over)
            part = part[over]
            self.numbers[slots[part]] += 1
