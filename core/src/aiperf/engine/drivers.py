"""What starts requests: ticks, free slots, or sessions with times of their own.

All run on the loop as plain callbacks; nothing here awaits.  A driver owns its phase's sessions: the engine tells it when
a request is over, and the driver decides what that session, or its slot, does next.

An arrival that could not leave when it was due because the ceiling was full, or because the turn before it was not answered,
was *held*; how long is told to the host apart, so that the server's slowness is not taken for the client's.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, MutableSequence
from time import monotonic_ns
from typing import Protocol

from aiperf.engine.clock import NS_PER_S, Timer
from aiperf.engine.gate import Gate
from aiperf.engine.session import Session
from aiperf.engine.slots import Counter
from aiperf.engine.standing import ARRIVALS, SESSIONS
from aiperf.plan import PhasePlan

_UNBOUNDED = 1 << 60
_NEVER = 1 << 62


class Host(Protocol):
    """What a driver asks of the engine."""

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        """*entry*, *turns*: of the data set, and how many of its turns; None leaves them to the sampler and the data."""

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        """Start the session's next request.

        n: number of the arrival.  due_ns: monotonic, -1 where nothing was scheduled.  held_ns: how long it then waited for a
        slot or an answer.
        """

    def delay_ns(self, session: Session) -> int:
        """Think time before the session's next turn."""


class Driver:
    """Sends a phase's share of arrivals.  *complete* once nothing more will be sent."""

    def __init__(self, host: Host, phase: PhasePlan, gate: Gate, loop: asyncio.AbstractEventLoop) -> None:
        self.host, self.phase, self.gate, self.loop = host, phase, gate, loop
        self.complete = False
        self.on_complete: Callable[[], None] = lambda: None
        self._thinking: dict[Session, asyncio.TimerHandle] = {}
        self._ready: deque[Session] = deque()
        self._alive = 0

    def begin(self, start_ns: int) -> None:
        """Start; called at, or just before, *start_ns* (monotonic)."""
        raise NotImplementedError(type(self).__name__)

    def over(self, session: Session) -> None:
        """The session's request has returned, whatever came of it."""
        raise NotImplementedError(type(self).__name__)

    def first_token(self, session: Session) -> None:
        """The session's request waits for its first token no longer."""
        session.prefilling = False
        self.gate.prefilled()

    def stop(self) -> None:
        """Send nothing more; sessions waiting for anything are dropped."""
        for handle in self._thinking.values():
            handle.cancel()
        self._alive -= len(self._thinking) + len(self._ready)
        self._thinking.clear()
        self._ready.clear()
        self._finish()

    def _finish(self) -> None:
        if not self.complete:
            self.complete = True
            self.gate.rest()
            self.on_complete()

    def _send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        session.prefilling = self.gate.prefills
        self.host.send(session, n, due_ns, held_ns)

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

    *share* bounds the slots this worker takes before others had their turn; None doesn't.  A slot stays with this worker while
    there is work: it is given back only at the end, so that a completion is followed by the next send in the same loop turn.
    """

    def __init__(
        self,
        host: Host,
        phase: PhasePlan,
        gate: Gate,
        loop: asyncio.AbstractEventLoop,
        *,
        claims: Counter,
        sessions: Counter | None,
        share: int | None,
    ) -> None:
        super().__init__(host, phase, gate, loop)
        self._claims, self._sessions, self._share = claims, sessions, _UNBOUNDED if share is None else share
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
        """Send what may leave now: turns first, then new sessions."""
        while self._ready:
            if not self.gate.turn():
                self.gate.wait(self._fill)
                return
            self._resume(self._ready.popleft())
        while not self._exhausted and not self.complete and self._alive < self._share:
            if not self.gate.session():
                self.gate.wait(self._fill)
                return
            self._start()
        if not self.complete:
            self.gate.rest()

    def _next(self) -> None:
        """Use the slot just freed for another session, else give it back."""
        if not self.complete and not self._exhausted:
            if self.gate.turn():
                self._start()
            else:
                self.gate.session_over(quiet=True)
                self.gate.wait(self._fill)
            return
        self.gate.session_over()
        self._end()

    def _start(self) -> None:
        """Another session in the slots just taken."""
        number = self._number()
        if number is not None:
            self._alive += 1
            session, n = number
            self._send(self.host.session(self.phase, session), n, -1)
            return
        self._exhausted = True
        self.gate.prefilled(quiet=True)
        self.gate.session_over()
        self._end()

    def _end(self) -> None:
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
        if self._ready or not self.gate.turn():
            self._ready.append(session)
            self.gate.wait(self._fill)
        else:
            self._resume(session)

    def _resume(self, session: Session) -> None:
        """The session's next turn, in the slots it has; where no more requests are to be made, its end."""
        n = self._claims.next()
        if self.phase.request_count is None or n < self.phase.request_count:
            self._send(session, n, -1)
            return
        self._exhausted = True
        self._alive -= 1
        self.gate.prefilled(quiet=True)
        self._next()


class PacedDriver(Driver):
    """Open loop: an arrival leaves at its due time; a late one at once, never re-anchored.

    *due* are ns after the phase's start, for all shards; this one owns every *of*-th from *shard* on.  At a tick a session
    that waits for its next turn goes first, else a new session starts.  Under a ceiling an arrival without a slot waits
    and leaves the moment one frees.  Under a session count the end of the last session is the end, whatever is still due.
    *standing*: this shard's cells, from which it goes on where another process was before.
    """

    def __init__(
        self,
        host: Host,
        phase: PhasePlan,
        gate: Gate,
        loop: asyncio.AbstractEventLoop,
        *,
        due: memoryview,
        shard: int,
        of: int,
        standing: MutableSequence[int],
    ) -> None:
        super().__init__(host, phase, gate, loop)
        self._due, self._of, self._standing = due, of, standing
        self._n = shard + standing[ARRIVALS] * of
        self._session = shard + standing[SESSIONS] * of
        self._start_ns = 0
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
        self._waiting.clear()
        super().stop()

    def over(self, session: Session) -> None:
        if not self.complete and not session.last:
            session.turn += 1
            self._think(session, self._ripe)
            return
        self._alive -= 1
        self.gate.session_over()
        if self._all_started and not self._alive and not self.complete:
            self._done()

    @property
    def _all_started(self) -> bool:
        return self.phase.session_count is not None and self._session >= self.phase.session_count

    def _tick(self) -> None:
        due, start = self._due, self._start_ns
        while self._n < len(due) and start + due[self._n] <= monotonic_ns():
            n = self._n
            self._n = n + self._of
            self._standing[ARRIVALS] += 1
            self._arrive(n, start + due[n])
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
        if self._waiting or not self._leave(n, at):
            self._waiting.append((n, at))
            self.gate.wait(self._freed)

    def _ripe(self, session: Session) -> None:
        """The session's next turn wants a tick; one that is overdue will do."""
        self._ready.append(session)
        if self._waiting:
            self._freed()

    def _freed(self) -> None:
        """Let arrivals leave that wait for a slot."""
        while self._waiting and not self.complete:
            n, at = self._waiting[0]
            if not self._leave(n, at, monotonic_ns() - at):
                self.gate.wait(self._freed)
                return
            self._waiting.popleft()
        if self.complete:
            return
        self.gate.rest()
        if self._n >= len(self._due):
            self._done()

    def _leave(self, n: int, at: int, held_ns: int = 0) -> bool:
        """Use a tick for what it is for; False if there is something, and no slot for it."""
        if self._ready:
            if not self.gate.turn():
                return False
            self._send(self._ready.popleft(), n, at, held_ns)
        elif not self._all_started:
            if not self.gate.session():
                return False
            session = self.host.session(self.phase, self._session)
            self._session += self._of
            self._standing[SESSIONS] += 1
            self._alive += 1
            self._send(session, n, at, held_ns)
        return True  # else the tick is nobody's


class SessionsDriver(Driver):
    """Every session has a time to start: a replayed trace, or users who come one after the other.

    *rows*: three numbers a session, its entry, its turns and the number of its first arrival; *due*: of each arrival, ns after
    the phase's start, -1 where only the answers will tell.  This shard owns every *of*-th session from *shard* on.

    A later turn leaves ``phase.spacing_ns`` behind the one before it, or at its recorded time, or after the data set's delay;
    but never before the answer.  One that the answer made late leaves at once, and with a spacing the next follows it.
    """

    def __init__(
        self,
        host: Host,
        phase: PhasePlan,
        gate: Gate,
        loop: asyncio.AbstractEventLoop,
        *,
        due: memoryview,
        rows: memoryview,
        shard: int,
        of: int,
        standing: MutableSequence[int],
    ) -> None:
        super().__init__(host, phase, gate, loop)
        self._due, self._rows, self._of, self._standing = due, rows, of, standing
        self._session = shard + standing[SESSIONS] * of
        self._count = len(rows) // 3
        self._start_ns = 0
        self._later: list[tuple[int, int, Session]] = []  # a heap of (due, number, session)
        self._waiting: deque[tuple[int, Session | int]] = deque()
        self._timer = Timer(loop, self._tick)

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._arm()

    def stop(self) -> None:
        self._timer.close()
        self._later.clear()
        self._waiting.clear()
        super().stop()

    def over(self, session: Session) -> None:
        if self.complete or session.last:
            self.gate.session_over()
            return
        session.turn += 1
        now = monotonic_ns()
        at = self._next_due(session, now)
        if at <= now:
            self._offer(at, session, held=at < now)
        else:
            heapq.heappush(self._later, (at, session.number, session))
        self._arm()

    def _next_due(self, session: Session, now: int) -> int:
        """When the session's next turn is due, monotonic; *now* its answer came."""
        if self.phase.spacing_ns is not None:
            return session.base_ns + self.phase.spacing_ns
        recorded_ns = self._due[session.first + session.turn]
        return self._start_ns + recorded_ns if recorded_ns >= 0 else now + self.host.delay_ns(session)

    def _start_due(self) -> int:
        """When the next session is due, monotonic."""
        return self._start_ns + int(self._due[self._rows[3 * self._session + 2]])

    def _tick(self) -> None:
        """Everything that is due by now, the earliest first."""
        while not self.complete:
            later = self._later[0][0] if self._later else _NEVER
            start = self._start_due() if self._session < self._count else _NEVER
            if min(later, start) > monotonic_ns():
                self._arm()
                return
            if start <= later:
                number = self._session
                self._session += self._of
                self._standing[SESSIONS] += 1
                self._offer(start, number)
            else:
                self._offer(later, heapq.heappop(self._later)[2])

    def _arm(self) -> None:
        if self.complete:
            return
        times = [self._later[0][0]] if self._later else []
        if self._session < self._count:
            times.append(self._start_due())
        if times:
            self._timer.set(min(times))
        elif not self._waiting and not self._alive:
            self._timer.close()
            self._finish()

    def _offer(self, at: int, what: Session | int, *, held: bool = False) -> None:
        """Send the next turn of a session, or the first of the session of that number, now or as soon as there is a slot."""
        if self._waiting or not self._leave(at, what, held=held):
            self._waiting.append((at, what))
            self.gate.wait(self._freed)

    def _freed(self) -> None:
        while self._waiting and not self.complete:
            if not self._leave(*self._waiting[0], held=True):
                self.gate.wait(self._freed)
                return
            self._waiting.popleft()
        if not self.complete:
            self.gate.rest()
            self._arm()

    def _leave(self, at: int, what: Session | int, *, held: bool) -> bool:
        """Send if there is a slot for it; False if there is none."""
        if isinstance(what, int):
            if not self.gate.session():
                return False
            session = self._new(what)
        else:
            if not self.gate.turn():
                return False
            session = what
        now = monotonic_ns()
        session.base_ns = now if held else at
        if session.last:
            self._alive -= 1
        self._send(session, session.first + session.turn, at, now - at if held else 0)
        return True

    def _new(self, number: int) -> Session:
        entry, turns, first = self._rows[3 * number : 3 * number + 3]
        session = self.host.session(self.phase, number, entry, turns)
        session.first = first
        self._alive += 1
        return session
