"""The {{ cookiecutter.name }} driver: one request after the other, with a pause behind each answer.

``--scheduling-mode {{ cookiecutter.__word }}`` chooses its schedule, which names the driver.
"""

from __future__ import annotations

import numpy as np
from aiperf import Driver, DriverContext, ScheduleContext, Session
from numpy.typing import NDArray

from {{ cookiecutter.__module }}.options import PauseOptions


class {{ cookiecutter.__class }}(Driver[PauseOptions]):
    """Each worker sends one request at a time.

    The numbers of sessions and arrivals come from counters that all workers share.
    """

    def __init__(self, options: PauseOptions, context: DriverContext) -> None:
        super().__init__(options, context)
        self._pause_ns = round(options.pause_s * 1e9)
        self._session: Session | None = None
        self._due_ns = -1
        self._timer = context.timer(self._send_next)

    def begin(self, start_ns: int) -> None:
        self._timer.set(start_ns)

    def stop(self) -> None:
        self._timer.close()
        super().stop()

    def request_ended(self, session: Session) -> None:
        self._due_ns = session.answered_ns + self._pause_ns
        if session.last or self.complete:
            self._session = None
            self.gate.release_session()
        else:
            session.turn += 1
            self._due_ns = max(self._due_ns, session.answered_ns + self.requests.delay_ns(session))
        if not self.complete:
            self._timer.set(self._due_ns)

    def _send_next(self) -> None:
        """Send the next turn of the session, or the first turn of another one."""
        taken = self.gate.take_session() if self._session is None else self.gate.take_turn()
        if not taken:
            self.gate.wait(self._send_next)
            return
        self.gate.stop_waiting()
        session = self._session or self._start()
        n = None if session is None else self.context.arrival_numbers.next()
        if session is None or n is None or (self.phase.request_count is not None and n >= self.phase.request_count):
            self.gate.release_prefill(quiet=True)
            self.gate.release_session(quiet=True)
            self._timer.close()
            self.finish()
            return
        self._session = session
        self.send(session, n, self._due_ns)

    def _start(self) -> Session | None:
        """Another session; None where the phase has started all."""
        number = self.context.session_numbers.next()
        if self.phase.session_count is not None and number >= self.phase.session_count:
            return None
        return self.requests.session(self.phase, number)


class {{ cookiecutter.__class }}Schedule:
    """No arrival has a due time: the driver decides."""

    paced = False
    driver = "{{ cookiecutter.__key }}"

    def __init__(self, context: ScheduleContext) -> None:
        self.context = context

    def due_block(self, first: int, count: int) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)
