"""Whether the data set is made as fast as the load takes it: told before the load begins."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

log = logging.getLogger(__name__)

_SOON_S = 1.0
"""What is made in that time needs no word."""
_LATE_S = 0.05


class Pace:
    """How fast entries are made, without the first half of them, which has the cost of what is made once."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, float]] = []
        self.entries, self.rate = 0, 0.0
        """How many are made, and how many a second; 0 where too few are made to tell."""

    def note(self, entries: int) -> None:
        """So many entries are made by now."""
        now_s = monotonic()
        if not self._marks or entries >= 2 * self._marks[-1][0]:
            self._marks = [*self._marks[-1:], (entries, now_s)]
        self.entries, (before, began_s) = entries, self._marks[0]
        self.rate = (entries - before) / (now_s - began_s) if entries > before and now_s > began_s else 0.0


def tell(pace: Pace, due_ns: Ints | None, entries: int) -> None:
    """Log whether the other entries of *entries* will be there when they are due, which is None where that is not known."""
    left = entries - pace.entries
    if not pace.rate or left / pace.rate < _SOON_S:
        return
    rate = f"{pace.rate:,.0f}" if pace.rate >= 10 else f"{pace.rate:.1f}"
    before = f"--check-data makes all of it before the load, in about {entries / pace.rate:,.0f} s"
    if due_ns is None:
        log.info(
            "the data set is made beside the load, about %s entries/s: where the server is faster, requests wait for them; %s",
            rate, before,
        )  # fmt: skip
        return
    first, worst_s = _late(pace, due_ns, entries)
    if first is not None:
        log.warning(
            "the data set is made more slowly than the load takes it, about %s entries/s: from request %s on requests wait for"
            " their entries, the last ones about %.1f s; %s", rate, f"{first + 1:,}", worst_s, before
        )  # fmt: skip


def _late(pace: Pace, due_ns: Ints, entries: int) -> tuple[int | None, float]:
    """The first request that is due before its entry is made, None where there is none, and the longest wait in s."""
    import numpy as np  # a phase with due times has computed with it

    due_s = due_ns[pace.entries : entries] / 1e9
    waits_s = np.arange(1, len(due_s) + 1) / pace.rate - due_s
    late = np.flatnonzero(waits_s > _LATE_S)
    return (None, 0.0) if not len(late) else (pace.entries + int(late[0]), float(waits_s.max()))
