"""How far ahead of the load a data set is made that promises to be sparing: what is due next is there, and the rest is not."""

from __future__ import annotations

from array import array
from time import monotonic
from typing import TYPE_CHECKING

from aiperf.prepare import pace

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

AHEAD_BYTES = 1 << 24
"""Small entries are used up fast: at least so much is made ahead."""


class Lead:
    """Says when enough is made ahead.

    wave: how many entries may be begun at once.  due_ns: of the entries in the order of their making, as of ``FirstUse``.
    entries: how many there are.  speed: how fast they are made.
    """

    def __init__(self, wave: int, due_ns: Ints | None, entries: int, speed: pace.Pace) -> None:
        self._wave, self._due_ns, self._entries, self._speed = wave, due_ns, entries, speed
        self._ends = array("q")
        self._reached, self._reached_s = 0, monotonic()

    def note(self, written_bytes: int) -> None:
        """An entry is made, and all of them have so many bytes."""
        self._ends.append(written_bytes)

    def far_enough(self, reached: int) -> bool:
        """Whether another wave is made behind the first *reached*, which the load has used, and behind the first wave."""
        begun = max(reached, self._wave)
        if len(self._ends) <= begun + self._wave:  # the last one can't be read yet
            return False
        return self._ends[-1] - (self._ends[begun - 1] if begun else 0) >= AHEAD_BYTES

    def may_rest(self, reached: int) -> bool:
        """Whether so much is made, and the others can be made in time when their making goes on at the next look."""
        if reached != self._reached:
            self._reached, self._reached_s = reached, monotonic()
        if not self.far_enough(reached):
            return False
        if self._due_ns is None:
            return True
        now_ns = (int(self._due_ns[reached - 1]) if reached else 0) + round((monotonic() - self._reached_s) * 1e9)
        return pace.in_time(self._speed, self._due_ns - now_ns, len(self._ends), self._entries)
