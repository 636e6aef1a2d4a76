"""What a turn needs before it may leave: its session's slot, and the right to wait for a first token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns

from aiperf.engine.clock import NS_PER_S
from aiperf.engine.slots import Slots


class Gate:
    """Takes all that is needed, or nothing.

    *prefills*: whether there is a limit of requests that wait for their first token.
    """

    def __init__(self, sessions: Slots, prefill: Slots | None = None) -> None:
        self._sessions, self._prefill = sessions, prefill
        self._lacked = sessions
        self.prefills = prefill is not None

    def session(self) -> bool:
        """Take what the first turn of a new session needs."""
        if not self._sessions.take():
            self._lacked = self._sessions
            return False
        if self.turn():
            return True
        self._sessions.give(quiet=True)
        return False

    def turn(self) -> bool:
        """Take what a turn of a session needs that holds its slot."""
        if self._prefill is None or self._prefill.take():
            return True
        self._lacked = self._prefill
        return False

    def session_over(self, *, quiet: bool = False) -> None:
        """Give the session's slot back."""
        self._sessions.give(quiet=quiet)

    def prefilled(self, *, quiet: bool = False) -> None:
        """Give the right to wait for a first token back, where there is such a thing."""
        if self._prefill is not None:
            self._prefill.give(quiet=quiet)

    def wait(self, call: Callable[[], None]) -> None:
        """Call back when what was last lacked may be there.

        Only of that: a shared slot is readable while it is free, and would keep the loop busy.
        """
        for slots in (self._sessions, self._prefill):
            if slots is not None:
                slots.wanted(call if slots is self._lacked else None)

    def rest(self) -> None:
        """Call nobody any more."""
        self._sessions.wanted(None)
        if self._prefill is not None:
            self._prefill.wanted(None)


class Rise:
    """Raises a limit level by level, as its ramp says.

    *levels*: when each further slot comes, in ns after the phase's start, never decreasing.
    """

    def __init__(self, levels: memoryview, slots: Slots, loop: asyncio.AbstractEventLoop) -> None:
        self._levels, self._slots, self._loop = levels, slots, loop
        self._start_ns = 0
        self._level = 0
        self._handle: asyncio.TimerHandle | None = None

    def begin(self, start_ns: int, *, skip: bool = False) -> None:
        """*skip*: the levels reached by now are there already."""
        self._start_ns = start_ns
        if skip:
            while self._level < len(self._levels) and start_ns + self._levels[self._level] <= monotonic_ns():
                self._level += 1
        self._rise()

    def _rise(self) -> None:
        levels = self._levels
        while self._level < len(levels):
            left_ns = self._start_ns + levels[self._level] - monotonic_ns()
            if left_ns > 0:
                self._handle = self._loop.call_later(left_ns / NS_PER_S, self._rise)
                return
            self._level += 1
            self._slots.more()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._level = len(self._levels)
