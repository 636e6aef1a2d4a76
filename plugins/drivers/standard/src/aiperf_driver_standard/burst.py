"""The driver that sends whenever a slot is free."""

from __future__ import annotations

from collections import deque
from time import monotonic_ns

from aiperf.sdk.driver import Driver, DriverContext, Session, Timer

_UNBOUNDED = 1 << 60
"""Requests in flight where there is no limit: more than there can be."""


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
                self.gate.wait(self._fill, turns=bool(self._ready))
                return
            session = self._ready.popleft()
            self._send_turn(session, monotonic_ns() - session.due_ns if session.due_ns >= 0 else 0)
        while not self._exhausted and not self.complete and self._alive < self._share:
            if not self.gate.take_session():
                self.gate.wait(self._fill, turns=bool(self._ready))
                return
            self._start_session()
        if not (self.complete or self._ready):  # a session may start turns that wait
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
            self.gate.wait(self._fill, turns=bool(self._ready))

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
            self.gate.wait(self._fill, turns=bool(self._ready))
        else:
            self._send_turn(session)

    def _send_turn(self, session: Session, held_ns: int = 0) -> None:
        """The session's next turn, in the slots it has; the session's end where the phase makes no more requests.

        held_ns: how long it waited for a slot behind its think time.
        """
        n = self._arrivals.next()
        if n < self._most_requests:
            self.send(session, n, -1, held_ns)
            return
        self._exhausted = True
        self._alive -= 1
        self.gate.release_prefill(quiet=True)
        self._reuse_slot()
