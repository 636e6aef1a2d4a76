"""Things that wait, and may come a little sooner or later: those of a few milliseconds come together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Generic, TypeVar

T = TypeVar("T")
_LONGEST_S = 1e6
"""The longest time that a timer is set for."""
_ROUND_NS = 4_000_000
"""Between two rounds at most."""


class Rounds(Generic[T]):
    """Calls *due* with each thing, in rounds: waking for each of thousands of polls would be most of what the loop does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[T], None]) -> None:
        self._loop, self._due = loop, due
        self._rounds: dict[int, list[T]] = {}

    def add(self, thing: T, wait_s: float, slack_s: float) -> None:
        """Call with *thing* in *wait_s* seconds, or up to *slack_s* and 2 ms sooner or later."""
        now_ns, step_ns = monotonic_ns(), max(1, min(_ROUND_NS, int(2e9 * slack_s)))
        at_ns = round((now_ns + min(wait_s, _LONGEST_S) * 1e9) / step_ns) * step_ns
        waiting = self._rounds.get(at_ns)
        if waiting is None:
            waiting = self._rounds[at_ns] = []
            self._loop.call_later(max(0, at_ns - now_ns) / 1e9, self._call, at_ns)
        waiting.append(thing)

    def _call(self, at_ns: int) -> None:
        for thing in self._rounds.pop(at_ns):
            self._due(thing)


__all__ = ["Rounds"]
