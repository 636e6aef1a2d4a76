"""Windows of time over which series are folded, and where each series is among them."""

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
    """The window in which each series is; a series never goes back."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.numbers = np.zeros(0, np.int64)

    def grow(self, count: int) -> None:
        self.numbers = np.concatenate([self.numbers, np.zeros(count, np.int64)])

    def walk(self, slots: Ints, before_ns: Ints, at_ns: Ints, fresh: Mask) -> Iterator[Steps]:
        """The steps of the series in *slots*, each from *before_ns* to *at_ns*, window by window; *fresh*: first samples."""
        windows = self.windows
        if not len(windows):
            return
        if fresh.any():
            self.numbers[slots[fresh]] = windows.ends[:-1].searchsorted(at_ns[fresh])
        part = np.arange(len(slots))
        while len(part):
            numbers, now_ns = self.numbers[slots[part]], at_ns[part]
            begins, ends = windows.begins[numbers], windows.ends[numbers]
            inside, over = (begins <= now_ns) & (now_ns <= ends), ends <= now_ns
            yield Steps(part, numbers, np.maximum(before_ns[part], begins), np.minimum(now_ns, ends), inside, over)
            part = part[over]
            self.numbers[slots[part]] += 1
