"""The driver that sends arrivals at their due times."""

from __future__ import annotations

from collections import deque
from time import monotonic_ns

from aiperf.sdk.driver import ARRIVALS, SESSIONS, Driver, DriverContext, Session


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
            self._wait()

    def _wait(self) -> None:
        self.gate.wait(self._send_waiting)

    def _offer(self, session: Session) -> None:
        """The session is ready for its next turn; an arrival that waits takes it."""
        self._ready.append(session)
        if self._waiting:
            self._send_waiting(max(session.due_ns, session.answered_ns))

    def _send_waiting(self, ready_ns: int | None = None) -> None:
        """A slot may be free, or a turn ready since *ready_ns*: send waiting arrivals."""
        while self._waiting and not self.complete:
            n, due_ns = self._waiting[0]
            held_ns = max(0, (ready_ns or monotonic_ns()) - due_ns)
            if not self._try_send(n, due_ns, held_ns):
                self._wait()
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
