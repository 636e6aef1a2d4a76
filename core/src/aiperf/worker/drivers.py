"""The kernel's own drivers: behind free slots, at due times, and sessions with start times of their own."""

from __future__ import annotations

import heapq
from collections import deque
from time import monotonic_ns

from aiperf.sdk.driver import ARRIVALS, SESSIONS, Driver, DriverContext, Session, Timer

_UNBOUNDED = 1 << 60
_NEVER = 1 << 62
_Queue = deque[tuple[int, Session | int]]
"""When it is due, and a session with its next turn or the number of a session to start."""


class BurstDriver(Driver[None]):
    """Whenever a slot is free the next turn, or the next session, leaves.

    A slot stays with this worker while there is work: it is given back only at the end, so that a completion is followed by the
    next send in the same loop turn.  The context's *share* bounds the slots this worker takes at first.
    """

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        self._arrivals = context.arrival_numbers
        self._sessions = context.session_numbers if context.max_turns > 1 else None
        self._share, self._most_requests, self._most_sessions = (
            _UNBOUNDED if limit is None else limit
            for limit in (context.share, context.phase.request_count, context.phase.session_count)
        )
        self._ready: deque[Session] = deque()
        self._alive, self._exhausted = 0, False
        self._timer: Timer | None = None

    def begin(self, start_ns: int) -> None:
        if start_ns > monotonic_ns():
            # A timer of the loop may fire half a millisecond early: a request would precede its phase.
            self._timer = self.context.timer(self._start)
            self._timer.set(start_ns)
        else:
            self._fill()

    def finish(self) -> None:
        self._drop_timer()
        super().finish()

    def _start(self) -> None:
        self._drop_timer()
        self._fill()

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def request_ended(self, session: Session) -> None:
        if self.complete or session.last:
            self._alive -= 1
            self._reuse_slot()
        else:
            session.turn += 1
            self.think(session, self._continue)

    def _fill(self) -> None:
        """Send what may leave now: turns first, then new sessions."""
        while self._ready and not self.complete:
            if not self.gate.take_turn():
                self.gate.wait(self._fill)
                return
            self._send_turn(self._ready.popleft())
        while not self._exhausted and not self.complete and self._alive < self._share:
            if not self.gate.take_session():
                self.gate.wait(self._fill)
                return
            self._start_session()
        if not self.complete:
            self.gate.stop_waiting()

    def _reuse_slot(self) -> None:
        """Use the slot just freed for another session, else give it back."""
        if self.complete or self._exhausted:
            self.gate.release_session()
            self._finish_if_done()
        elif self.gate.take_turn():
            self._start_session()
        else:
            self.gate.release_session(quiet=True)
            self.gate.wait(self._fill)

    def _start_session(self) -> None:
        """Another session in the slots just taken."""
        if self._sessions is None:
            number = n = self._arrivals.next()
        else:
            number = self._sessions.next()
            n = self._arrivals.next() if number < self._most_sessions else 0
        if number < self._most_sessions and n < self._most_requests:
            self._alive += 1
            self.send(self.requests.session(self.phase, number), n, -1)
            return
        self._exhausted = True
        self.gate.release_prefill(quiet=True)
        self.gate.release_session()
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._exhausted and not self._alive:
            self.finish()

    def _continue(self, session: Session) -> None:
        if self._ready or not self.gate.take_turn():
            self._ready.append(session)
            self.gate.wait(self._fill)
        else:
            self._send_turn(session)

    def _send_turn(self, session: Session) -> None:
        """The session's next turn, in the slots it has; the session's end where the phase makes no more requests."""
        n = self._arrivals.next()
        if n < self._most_requests:
            self.send(session, n, -1)
            return
        self._exhausted = True
        self._alive -= 1
        self.gate.release_prefill(quiet=True)
        self._reuse_slot()


class PacedDriver(Driver[None]):
    """Open loop: an arrival leaves at its due time; a late arrival leaves at once, and later ones keep their times.

    At a due time a session that is ready for its next turn goes first, else a new session starts.  An arrival without a slot
    waits, and leaves the moment a slot is free.  Under a session count the phase ends with its last session, whatever is still
    due.
    """

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        self._due, self._shards, self._progress = context.due, context.shards, context.progress
        self._n = context.shard + self._progress[ARRIVALS] * self._shards
        self._session = context.shard + self._progress[SESSIONS] * self._shards
        self._start_ns = self._alive = 0
        self._ready: deque[Session] = deque()
        self._waiting: deque[tuple[int, int]] = deque()
        self._timer = context.timer(self._tick)

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        if self._all_started:
            self.finish()
        else:
            self._set_timer()

    def finish(self) -> None:
        self._timer.close()
        super().finish()

    def request_ended(self, session: Session) -> None:
        if not self.complete and not session.last:
            session.turn += 1
            self.think(session, self._offer)
            return
        self._alive -= 1
        self.gate.release_session()
        if self._all_started and not self._alive and not self.complete:
            self.finish()

    @property
    def _all_started(self) -> bool:
        return self.phase.session_count is not None and self._session >= self.phase.session_count

    def _tick(self) -> None:
        due, start = self._due, self._start_ns
        while self._n < len(due) and start + due[self._n] <= monotonic_ns():
            n = self._n
            self._n = n + self._shards
            self._progress[ARRIVALS] += 1
            self._arrive(n, start + due[n])
            if self.complete:
                return
        self._set_timer()

    def _set_timer(self) -> None:
        if self._n < len(self._due):
            self._timer.set(self._start_ns + self._due[self._n])
        elif not self._waiting:
            self.finish()

    def _arrive(self, n: int, due_ns: int) -> None:
        if self._waiting or not self._try_send(n, due_ns):
            self._waiting.append((n, due_ns))
            self.gate.wait(self._send_waiting)

    def _offer(self, session: Session) -> None:
        """The session is ready for its next turn; an arrival that waits takes it."""
        self._ready.append(session)
        if self._waiting:
            self._send_waiting()

    def _send_waiting(self) -> None:
        """A slot may be free: send waiting arrivals."""
        while self._waiting and not self.complete:
            n, due_ns = self._waiting[0]
            if not self._try_send(n, due_ns, monotonic_ns() - due_ns):
                self.gate.wait(self._send_waiting)
                return
            self._waiting.popleft()
        if self.complete:
            return
        self.gate.stop_waiting()
        if self._n >= len(self._due):
            self.finish()

    def _try_send(self, n: int, due_ns: int, held_ns: int = 0) -> bool:
        """Send what this arrival is for; False if that lacks a slot."""
        if self._ready:
            if not self.gate.take_turn():
                return False
            self.send(self._ready.popleft(), n, due_ns, held_ns)
        elif not self._all_started:
            if not self.gate.take_session():
                return False
            session = self.requests.session(self.phase, self._session)
            self._session += self._shards
            self._progress[SESSIONS] += 1
            self._alive += 1
            self.send(session, n, due_ns, held_ns)
        return True  # every session has started and none is ready: the arrival is not used


class SessionsDriver(Driver[None]):
    """Every session has a time to start: a replayed trace, or users who come one after the other.

    A later turn leaves ``phase.spacing_ns`` behind the turn before it, or at its recorded time, or after the data set's delay;
    but never before the answer.  A turn that the answer made late leaves at once; with a spacing, the turns behind it move with
    it.
    """

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        self._due, self._rows = context.due, context.sessions
        self._shards, self._progress = context.shards, context.progress
        self._session = context.shard + self._progress[SESSIONS] * self._shards
        self._count = len(self._rows) // 3
        self._start_ns = self._alive = 0
        self._later: list[tuple[int, int, Session]] = []  # a heap of (due, number, session)
        self._waiting_turns, self._waiting_starts = _Queue(), _Queue()
        self._timer = context.timer(self._tick)

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._set_timer()

    def finish(self) -> None:
        self._timer.close()
        super().finish()

    def request_ended(self, session: Session) -> None:
        if self.complete or session.last:
            self.gate.release_session()
            return
        session.turn += 1
        now = monotonic_ns()
        due_ns = self._next_due(session, now)
        if due_ns <= now:
            self._offer(due_ns, session, held=due_ns < now)
        else:
            heapq.heappush(self._later, (due_ns, session.number, session))
        self._set_timer()

    def _next_due(self, session: Session, now: int) -> int:
        """When the session's next turn is due, monotonic; its answer came at *now*."""
        if self.phase.spacing_ns is not None:
            return session.base_ns + self.phase.spacing_ns
        recorded_ns = self._due[session.first + session.turn]
        return self._start_ns + recorded_ns if recorded_ns >= 0 else now + self.requests.delay_ns(session)

    def _due_times(self) -> tuple[int, int]:
        """When the next turn behind its answer and the next session are due, monotonic; _NEVER if there is none."""
        later = self._later[0][0] if self._later else _NEVER
        if self._session >= self._count:
            return later, _NEVER
        return later, self._start_ns + int(self._due[self._rows[3 * self._session + 2]])

    def _tick(self) -> None:
        """Send what is due by now, the earliest first."""
        while not self.complete:
            later, start = self._due_times()
            if min(later, start) > monotonic_ns():
                self._set_timer()
                return
            if start <= later:
                number = self._session
                self._session += self._shards
                self._progress[SESSIONS] += 1
                self._offer(start, number)
            else:
                self._offer(later, heapq.heappop(self._later)[2])

    def _set_timer(self) -> None:
        if self.complete:
            return
        due_ns = min(self._due_times())
        if due_ns < _NEVER:
            self._timer.set(due_ns)
        elif not self._waiting_starts and not self._alive:
            self.finish()

    def _offer(self, due_ns: int, what: Session | int, *, held: bool = False) -> None:
        """Send the next turn of a session, or the first turn of session number *what*, now or when there is a slot."""
        queue = self._waiting_starts if isinstance(what, int) else self._waiting_turns
        if queue or not self._try_send(due_ns, what, held=held):
            queue.append((due_ns, what))
            self.gate.wait(self._send_waiting)

    def _send_waiting(self) -> None:
        """A slot may be free: send what waits, the earliest first.

        Turns pass a session that waits for a slot: the slot comes free only when the sessions under way make their turns.
        """
        turns, starts = self._waiting_turns, self._waiting_starts
        while (turns or starts) and not self.complete:
            queue = turns if turns and (not starts or turns[0][0] <= starts[0][0]) else starts
            if not self._try_send(*queue[0], held=True):
                queue = turns
                if not queue or not self._try_send(*queue[0], held=True):
                    self.gate.wait(self._send_waiting)
                    return
            queue.popleft()
        if not self.complete:
            self.gate.stop_waiting()
            self._set_timer()

    def _try_send(self, due_ns: int, what: Session | int, *, held: bool) -> bool:
        """Send if there is a slot; False if there is none."""
        if not (self.gate.take_session() if isinstance(what, int) else self.gate.take_turn()):
            return False
        session = self._new(what) if isinstance(what, int) else what
        now = monotonic_ns()
        session.base_ns = now if held else due_ns
        if session.last:
            self._alive -= 1
        self.send(session, session.first + session.turn, due_ns, now - due_ns if held else 0)
        return True

    def _new(self, number: int) -> Session:
        entry, turns, first = self._rows[3 * number : 3 * number + 3]
        session = self.requests.session(self.phase, number, entry, turns)
        session.first = first
        self._alive += 1
        return session
