"""How a phase is driven: one request falls behind the other."""

from __future__ import annotations

import numpy as np
from aiperf import Driver, ScheduleContext, Session
from numpy.typing import NDArray


class Domino(Driver[None]):
    """Sends a session's next turn, or another session, when the request before it is over."""

    def begin(self, start_ns: int) -> None:
        self._timer = self.context.timer(self._push)
        self._timer.set(start_ns)

    def stop(self) -> None:
        self._timer.close()
        super().stop()

    def request_ended(self, session: Session) -> None:
        if not session.last and not self.complete:
            session.turn += 1
            self.think(session, self._fall)
            return
        self.gate.release_session()
        self._push()

    def _push(self) -> None:
        if self.complete:
            return
        if not self.gate.take_session():
            self.gate.wait(self._push)
            return
        self.gate.stop_waiting()
        number, count = self.context.session_numbers.next(), self.phase.session_count
        if count is not None and number >= count:
            self._topple()
        else:
            self._send(self.requests.session(self.phase, number))

    def _fall(self, session: Session) -> None:
        if self.gate.take_turn():
            self._send(session)
        else:
            self.gate.wait(lambda: self._fall(session))

    def _send(self, session: Session) -> None:
        n, count = self.context.arrival_numbers.next(), self.phase.request_count
        if count is not None and n >= count:
            self._topple()
        else:
            self.send(session, n, -1)

    def _topple(self) -> None:
        self.gate.release_prefill(quiet=True)
        self.gate.release_session(quiet=True)
        self._timer.close()
        self.finish()


class Dominoes:
    paced = False
    driver = "domino"

    def __init__(self, context: ScheduleContext) -> None:
        pass

    def due_block(self, first: int, count: int) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)
