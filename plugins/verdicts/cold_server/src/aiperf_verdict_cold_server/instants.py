"""How many of very many instants are up to a moment: of all moments in one pass over the instants in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from aiperf.sdk.columns import Floats
from numpy.typing import NDArray


class Moments:
    """Moments, and of the instants up to each the number and the sum, once :func:`count_up` has seen them.

    side: "right" counts an instant that is the moment itself, "left" doesn't.
    """

    def __init__(self, at: Floats, side: Literal["left", "right"] = "right") -> None:
        self._at, self._side = at, side
        self._order = np.argsort(at, kind="stable")
        self._ascending = at[self._order]
        self._done = 0
        self._counts, self._sums = np.zeros(len(at), dtype=np.int64), np.zeros(len(at))

    def take(self, instants: Floats, before: int, sums: Floats) -> None:
        """*instants*: the next ones, at least one, in ascending order.  before: their number so far.  sums: those of all up to
        each of them, the sum before them first."""
        edge = np.searchsorted(self._ascending, instants[-1], "left" if self._side == "right" else "right")
        own = slice(self._done, max(self._done, int(edge)))
        places = np.searchsorted(instants, self._ascending[own], self._side)
        self._counts[own], self._sums[own] = before + places, sums[places]
        self._done = own.stop

    def end(self, count: int, total: float) -> None:
        """There were so many instants: all of them are up to the moments that are left."""
        self._counts[self._done :], self._sums[self._done :] = count, total

    @property
    def counts(self) -> NDArray[np.int64]:
        found = np.empty_like(self._counts)
        found[self._order] = self._counts
        return found

    @property
    def areas(self) -> Floats:
        """The integral, up to each moment, of the number of instants up to then."""
        sums = np.empty_like(self._sums)
        sums[self._order] = self._sums
        found: Floats = self.counts * self._at - sums
        return found


def count_up(blocks: Iterable[Floats], *moments: Moments) -> None:
    """Tell the *moments* of all instants; *blocks* has them in ascending order."""
    count, total = 0, 0.0
    for instants in blocks:
        if len(instants):
            sums = np.cumsum(np.concatenate(([total], instants)))
            for each in moments:
                each.take(instants, count, sums)
            count, total = count + len(instants), float(sums[-1])
    for each in moments:
        each.end(count, total)
