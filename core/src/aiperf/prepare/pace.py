"""Whether the data set is made as fast as the load takes it: told before the load begins."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiperf.sdk.columns import Ints

log = logging.getLogger(__name__)

_SOON_S = 1.0
"""What is made in that time needs no word."""
_LATE_S = 0.05
_LOOK_S = 0.2
"""From one forecast to the next."""
_BESIDE = 4.0
"""So many times as long an entry may take beside the load, which has the cores (on two: 1,027/s before, 242/s beside)."""


class Pace:
    """How fast entries are made, without the first half of them, which has the cost of what is made once."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, float]] = []
        self.entries, self.rate = 0, 0.0
        """How many are made, and how many a second; 0 where too few are made to tell."""

    def note(self, entries: int) -> None:
        """*entries* are made by now."""
        now_s = monotonic()
        if not self._marks or entries >= 2 * self._marks[-1][0]:
            self._marks = [*self._marks[-1:], (entries, now_s)]
        self.entries, (before, began_s) = entries, self._marks[0]
        self.rate = (entries - before) / (now_s - began_s) if entries > before and now_s > began_s else 0.0


def ahead(pace: Pace, due_ns: Ints, entries: int, note: Callable[[], None]) -> Callable[[], bool] | None:
    """Says that entries of *entries* are made before the load, and gives what tells when that are enough; None where the others
    will be there when they are due.

    note: brings *pace* up to date.
    """
    first, worst_s = _late(pace, due_ns, pace.entries, entries, 1)
    if first is None:
        return None
    log.info(
        "the data set is made more slowly than the load takes it, about %s entries/s: request %s and others would wait for"
        " their entries, up to %.1f s; so entries are made before the load, as many as it takes, all %s in about %.0f s",
        _shown(pace.rate), f"{first + 1:,}", worst_s, f"{entries:,}", (entries - pace.entries) / pace.rate,
    )  # fmt: skip
    look_s = monotonic() + _LOOK_S

    def enough() -> bool:
        nonlocal look_s
        if monotonic() < look_s:
            return False
        look_s = monotonic() + _LOOK_S
        note()
        return in_time(pace, due_ns, pace.entries, entries)

    return enough


def in_time(pace: Pace, due_ns: Ints, made: int, entries: int) -> bool:
    """Whether the entries behind the first *made* of *entries* are there when they are due, if they are made from now on."""
    return _late(pace, due_ns, made, entries, _BESIDE)[0] is None


def tell(pace: Pace, entries: int) -> None:
    """Log that the other entries of *entries* are made beside a load that has no due times."""
    left = entries - pace.entries
    if not pace.rate or left / pace.rate < _SOON_S:
        return
    log.info(
        "the other %s of %s entries of the data set are made while requests are sent; a request whose entry is not made yet"
        " waits for it; --check-data makes all entries before the load, in about %s s",
        f"{left:,}", f"{entries:,}", f"{entries / pace.rate:,.0f}",
    )  # fmt: skip


def _shown(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def tell_sparing(made: int, entries: int) -> None:
    """Log that *made* entries are there, and the others are made when the load needs them."""
    log.info(
        "%s of %s entries of the data set are made; each other one is made shortly before its use, and a request whose entry is"
        " not made yet waits for it; --check-data makes all entries before the load", f"{made:,}", f"{entries:,}",
    )  # fmt: skip


def _late(pace: Pace, due_ns: Ints, made: int, entries: int, slower: float) -> tuple[int | None, float]:
    """The first request that is due before its entry is made, None where there is none, and the longest wait in s.

    made: entries that are made now.  slower: how many times as long as until now an entry takes.
    """
    import numpy as np  # a phase with due times has computed with it

    if not pace.rate:
        return None, 0.0
    due_s = due_ns[made:entries] / 1e9
    waits_s = np.arange(1, len(due_s) + 1) * slower / pace.rate - due_s
    late = np.flatnonzero(waits_s > _LATE_S)
    return (None, 0.0) if not len(late) else (made + int(late[0]), float(waits_s.max()))
