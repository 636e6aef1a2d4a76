"""Requests that wait for their entries: the load may begin before the builder has made the whole data set."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from aiperf.rundir.store import Store
from aiperf.rundir.uses import OwnUses
from aiperf.sdk.driver import Session

_LOOK_S = 0.001
"""From one look for new entries to the next."""

Late = tuple[Session, int, int, int, int]
"""Session, number of the arrival, due time, held time, and the request whose slot it took."""


class Unready:
    """The requests that wait, in the order in which they were to be sent.

    count: how many ever waited.  send: sends one.  on_empty: called once, when none waits any more.
    uses: told of the entries that are used, and of what waits; None where nobody asks.
    """

    def __init__(
        self, store: Store, loop: asyncio.AbstractEventLoop, send: Callable[[Late], None], uses: OwnUses | None = None
    ) -> None:  # fmt: skip
        self._store, self._loop, self._send, self._uses = store, loop, send, uses
        self._waiting: deque[Late] = deque()
        self.count = 0
        self.on_empty: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def reaches(self, entry: int) -> bool:
        """Whether the data set has the entry by now."""
        store, uses = self._store, self._uses
        store.grow()
        if not store.has(entry):
            return False
        if uses is not None:
            uses.note(store.place(entry))
        return True

    def put_off(self, late: Late) -> None:
        """Send the request once its entry is there."""
        if not self._waiting:
            self._loop.call_later(_LOOK_S, self._look)
        self._waiting.append(late)
        self.count += 1
        self._tell_waiting()

    def drop(self) -> None:
        """Send none of them."""
        self._waiting.clear()
        self._tell_waiting()
        self._tell()

    def _look(self) -> None:
        while self._waiting and self.reaches(self._waiting[0][0].entry):
            self._send(self._waiting.popleft())
        self._tell_waiting()
        if self._waiting:
            self._loop.call_later(_LOOK_S, self._look)
        else:
            self._tell()

    def _tell_waiting(self) -> None:
        if self._uses is not None:
            self._uses.wait(len(self._waiting))

    def _tell(self) -> None:
        call, self.on_empty = self.on_empty, None
        if call is not None:
            call()
