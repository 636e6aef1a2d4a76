"""What starts requests: a paced driver follows due times, a burst driver follows free slots.

Both run on the loop as plain callbacks; nothing here awaits.  A driver owns its phase's sessions: the engine tells it when
a request is over, and the driver decides what that session, or its slot, does next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

from aiperf.engine.clock import NS_PER_S, Timer
from aiperf.engine.session import Session
from aiperf.engine.slots import Counter, Slots
from aiperf.plan import PhasePlan


class Host(Protocol):
    """What a driver asks of the engine."""

    def session(self, phase: PhasePlan, number: int) -> Session: ...

    def send(self, session: Session, n: int, due_ns: int) -> None:
        """Start the session's next request.  *n*: arrival number; *due_ns*: monotonic, -1 where nothing was scheduled."""

    def delay_ns(self, session: Session) -> int:
        """Think time before the session's next turn."""


class Driver:
    """Sends a phase's share of arrivals.  *complete* once nothing more will be sent."""

    def __init__(self, host: Host, phase: PhasePlan, slots: Slots, loop: asyncio.AbstractEventLoop) -> None:
        self.host, self.phase, self.slots, self.loop = host, phase, slots, loop
        self.complete = False
        self.on_complete: Callable[[], None] = lambda: None
        self._thinking: dict[Session, asyncio.TimerHandle] = {}
        self._alive = 0

    def begin(self, start_ns: int) -> None:
        """Start; called at, or just before, *start_ns* (monotonic)."""
        raise NotImplementedError(type(self).__name__)

    def over(self, session: Session) -> None:
        """The session's request has returned, whatever came of it."""
        raise NotImplementedError(type(self).__name__)

    def stop(self) -> None:
        """Send nothing more; sessions waiting for anything are dropped."""
        for handle in self._thinking.values():
            handle.cancel()
        self._alive -= len(self._thinking)
        self._thinking.clear()
        self._finish()

    def _finish(self) -> None:
        if not self.complete:
            self.complete = True
            self.slots.wanted(None)
            self.on_complete()

    def _think(self, session: Session, then: Callable[[Session], None]) -> None:
        """Call *then* after the session's think time, at once if it has none."""
        delay = self.host.delay_ns(session)
        if delay <= 0:
            then(session)
            return

        def wake() -> None:
            del self._thinking[session]
            then(session)

        self._thinking[session] = self.loop.call_later(delay / NS_PER_S, wake)


class BurstDriver(Driver):
    """No pacing: whenever a slot is free the next turn, or the next session, leaves.

    *share* bounds the slots this worker takes before others had their turn.  A slot stays with this worker while there is
    work: it is given back only at the end, so that a completion is followed by the next send in the same loop turn.
    """

    def __init__(
        self,
        host: Host,
        phase: PhasePlan,
        slots: Slots,
        loop: asyncio.AbstractEventLoop,
        *,
        claims: Counter,
        sessions: Counter | None,
        share: int,
    ) -> None:
        super().__init__(host, phase, slots, loop)
        self._claims, self._sessions, self._share = claims, sessions, share
        self._exhausted = False

    def begin(self, start_ns: int) -> None:
        delay = start_ns - monotonic_ns()
        if delay > 0:
            self.loop.call_later(delay / NS_PER_S, self._fill)
        else:
            self._fill()

    def over(self, session: Session) -> None:
        if self.complete or session.last:
            self._alive -= 1
            self._next()
            return
        session.turn += 1
        self._think(session, self._continue)

    def _fill(self) -> None:
        while not self._exhausted and not self.complete and self._alive < self._share:
            if not self.slots.take():
                self.slots.wanted(self._fill)
                return
            self._next()
        if not self.complete:
            self.slots.wanted(None)

    def _next(self) -> None:
        """Use the slot just freed or taken for another session, else give it back."""
        if not self.complete and not self._exhausted:
            number = self._number()
            if number is not None:
                self._alive += 1
                session, n = number
                self.host.send(self.host.session(self.phase, session), n, -1)
                return
            self._exhausted = True
        self.slots.give()
        if self._exhausted and not self._alive:
            self._finish()

    def _number(self) -> tuple[int, int] | None:
        """(session, arrival), or None when there is no more to start."""
        phase = self.phase
        if self._sessions is not None:
            number = self._sessions.next()
            if phase.session_count is not None and number >= phase.session_count:
                return None
            n = self._claims.next()
            return None if phase.request_count is not None and n >= phase.request_count else (number, n)
        n = self._claims.next()
        if phase.request_count is not None and n >= phase.request_count:
            return None
        return None if phase.session_count is not None and n >= phase.session_count else (n, n)

    def _continue(self, session: Session) -> None:
        n = self._claims.next()
        if self.phase.request_count is not None and n >= self.phase.request_count:
            self._exhausted = True
            self._alive -= 1
            self._next()
            return
        self.host.send(session, n, -1)


class PacedDriver(Driver):
    """Open loop: an arrival leaves at its due time; a late one at once, never re-anchored.

    *due* are ns after the phase's start, for all shards; this one owns every *of*-th from *shard* on.  At a tick a session
    that waits for its next turn goes first, else a new session starts.  Under a ceiling an arrival without a slot waits
    and leaves the moment one frees.  Under a session count the end of the last session is the end, whatever is still due.
    """

    def __init__(
        self,
        host: Host,
        phase: PhasePlan,
        slots: Slots,
        loop: asyncio.AbstractEventLoop,
        *,
        due: memoryview,
        shard: int,
        of: int,
    ) -> None:
        super().__init__(host, phase, slots, loop)
        self._due, self._n, self._of = due, shard, of
        self._session = shard
        self._start_ns = 0
        self._ready: deque[Session] = deque()
        self._waiting: deque[tuple[int, int]] = deque()
        self._timer = Timer(loop, self._tick)

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        if self._all_started:
            self._done()
        else:
            self._arm()

    def stop(self) -> None:
        self._timer.close()
        self._ready.clear()
        self._waiting.clear()
        super().stop()

    def over(self, session: Session) -> None:
        if not self.complete and not session.last:
            session.turn += 1
            self._think(session, self._ready.append)
            return
        self._alive -= 1
        self.slots.give()
        if self._all_started and not self._alive and not self.complete:
            self._done()

    @property
    def _all_started(self) -> bool:
        return self.phase.session_count is not None and self._session >= self.phase.session_count

    def _tick(self) -> None:
        due, n, start = self._due, self._n, self._start_ns
        while n < len(due) and start + due[n] <= monotonic_ns():
            at = start + due[n]
            n += self._of
            self._n = n
            self._arrive(n - self._of, at)
            if self.complete:
                return
        self._arm()

    def _arm(self) -> None:
        if self._n < len(self._due):
            self._timer.set(self._start_ns + self._due[self._n])
        elif not self._waiting:
            self._done()

    def _done(self) -> None:
        self._timer.close()
        self._finish()

    def _arrive(self, n: int, at: int) -> None:
        if self._ready:
            self.host.send(self._ready.popleft(), n, at)
        elif self._all_started:
            return  # the tick is nobody's
        elif not self._waiting and self.slots.take():
            self._start(n, at)
        else:
            self._waiting.append((n, at))
            self.slots.wanted(self._freed)

    def _freed(self) -> None:
        while self._waiting and not self._all_started and self.slots.take():
            self._start(*self._waiting.popleft())
        if self._all_started:
            self._waiting.clear()
        if not self._waiting:
            self.slots.wanted(None)
            if self._n >= len(self._due) and not self.complete:
                self._done()

    def _start(self, n: int, at: int) -> None:
        session = self.host.session(self.phase, self._session)
        self._session += self._of
        self._alive += 1
        self.host.send(session, n, at)
