"""The driver of sessions that have start times of their own."""

from __future__ import annotations

import heapq
from collections import deque
from time import monotonic_ns

from aiperf.sdk.driver import SESSIONS, Driver, DriverContext, Session

_NEVER = 1 << 62
"""An instant (ns, monotonic) later than any run."""
_Queue = deque[tuple[int, Session | int]]
"""When it is due, and a session with its next turn or the number of a session to start."""


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
        self._later: list[tuple[int, int, int, Session]] = []  # a heap of (due, number, stream, session)
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
        due_ns = self._next_due(session)
        if due_ns <= monotonic_ns():
            self._offer(due_ns, session, max(0, session.answered_ns - due_ns))
        else:
            heapq.heappush(self._later, (due_ns, session.number, session.stream, session))
        self._set_timer()

    def _next_due(self, session: Session) -> int:
        """When the session's next turn is due, monotonic."""
        if self.phase.spacing_ns is not None:
            return session.base_ns + self.phase.spacing_ns
        recorded_ns = self._due[session.first + session.turn]
        return self._start_ns + recorded_ns if recorded_ns >= 0 else session.answered_ns + self.requests.delay_ns(session)

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
                self._offer(later, heapq.heappop(self._later)[3])

    def _set_timer(self) -> None:
        if self.complete:
            return
        due_ns = min(self._due_times())
        if due_ns < _NEVER:
            self._timer.set(due_ns)
        elif not self._waiting_starts and not self._alive:
            self.finish()

    def _offer(self, due_ns: int, what: Session | int, held_ns: int = 0) -> None:
        """Send the next turn of a session, or the first turn of session number *what*, now or when there is a slot.

        held_ns: how long the answer before kept it behind its due time.
        """
        queue = self._waiting_starts if isinstance(what, int) else self._waiting_turns
        if queue or not self._try_send(due_ns, what, held_ns):
            queue.append((due_ns, what))
            self.gate.wait(self._send_waiting, turns=bool(self._waiting_turns))

    def _send_waiting(self) -> None:
        """A slot may be free: send what waits, the earliest first.

        Turns pass a session that waits for a slot: the slot comes free only when the sessions under way make their turns.
        """
        turns, starts = self._waiting_turns, self._waiting_starts
        while (turns or starts) and not self.complete:
            queue = turns if turns and (not starts or turns[0][0] <= starts[0][0]) else starts
            if not self._try_send(*queue[0], monotonic_ns() - queue[0][0]):
                queue = turns
                if not queue or not self._try_send(*queue[0], monotonic_ns() - queue[0][0]):
                    self.gate.wait(self._send_waiting, turns=bool(self._waiting_turns))
                    return
            queue.popleft()
        if not self.complete:
            self.gate.stop_waiting()
            self._set_timer()

    def _try_send(self, due_ns: int, what: Session | int, held_ns: int) -> bool:
        """Send if there is a slot; False if there is none.

        held_ns: how long an answer or a slot kept it behind its due time; what it is later than that is the loop's.
        """
        if not (self.gate.take_session() if isinstance(what, int) else self.gate.take_turn()):
            return False
        session = self._new(what) if isinstance(what, int) else what
        session.base_ns = due_ns + held_ns
        if session.last:
            self._alive -= 1
        self.send(session, session.first + session.turn, due_ns, held_ns)
        return True

    def _new(self, number: int) -> Session:
        entry, turns, first = self._rows[3 * number : 3 * number + 3]
        session = self.requests.session(self.phase, number, entry, turns)
        session.first = first
        self._alive += 1
        return session
