"""Drivers of conversations that start others: each one's trees, at the times of the driver that it extends.

A tree is one session to the phase's limits: its root holds the session slot until all of it has ended.  Later turns and
children leave when they are due; they take no session slot and no tick of a rate, and each takes a prefill slot.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappush
from time import monotonic_ns

from aiperf.sdk.driver import Driver, DriverContext, Session

from aiperf_driver_standard.burst import BurstDriver
from aiperf_driver_standard.paced import PacedDriver
from aiperf_driver_standard.sessions import SessionsDriver
from aiperf_driver_standard.trees import Trees


class _TreeDriver(Driver[None]):
    """What drivers of trees have in common; stands before the driver that is extended."""

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        self.trees = Trees(context, self)

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        trees = self.trees
        if trees.has(session):
            trees.left(session)
        elif not session.turn and trees.begin(session, n, lambda: self.send(session, n, due_ns, held_ns)):
            return
        super().send(session, n, due_ns, held_ns)

    def request_ended(self, session: Session) -> None:
        if self.trees.has(session):
            self.trees.ended(session)
        else:
            super().request_ended(session)

    def finish(self) -> None:
        super().finish()
        self.trees.stop()

    def _due_ns(self, session: Session) -> int:
        """When the session's current turn is due, monotonic: the later of its think time and the end it waited for; -1 for at
        once."""
        delay_ns = self.requests.delay_ns(session)
        due_ns = max(session.answered_ns + delay_ns if delay_ns > 0 else 0, self.trees.gate_ns(session))
        return due_ns or -1

    def follow(self, session: Session) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define follow(session)")

    def dropped(self, session: Session) -> None:
        self.forget(session)

    def over(self, root: Session) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define over(root)")


class BurstTrees(_TreeDriver, BurstDriver):
    """Whenever a slot is free the next tree begins; its turns and children leave when they are due."""

    def follow(self, session: Session) -> None:
        self.later(session, self._due_ns(session), self._continue)

    def dropped(self, session: Session) -> None:
        super().dropped(session)
        if session in self._ready:
            self._ready.remove(session)

    def over(self, root: Session) -> None:
        self._alive -= 1
        self._reuse_slot()

    def _send_turn(self, session: Session, held_ns: int = 0) -> None:
        if not self.trees.has(session):
            super()._send_turn(session, held_ns)
            return
        n = self.trees.number(session)
        if n is None:
            n = self._arrivals.next()
        if n < self._most_requests:
            self.send(session, n, -1, held_ns)
            return
        self._exhausted = True
        self.gate.release_prefill(quiet=True)
        self.trees.truncate(session)


class PacedTrees(_TreeDriver, PacedDriver):
    """Trees begin, and their roots go on, at the due times; children leave when they are due, between these.

    Under a request count all requests of this worker count, so that late ticks may be nobody's.
    """

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        count = context.phase.request_count
        self._left = None if count is None else len(range(self._n, min(count, len(self._due)), self._shards))
        self._late_children: deque[Session] = deque()

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        super().send(session, n, due_ns, held_ns)
        if self._left is not None and self.trees.sent == self._left:
            self.finish()

    def follow(self, session: Session) -> None:
        self.later(session, self._due_ns(session), self._offer_child if session.stream else self._offer)

    def dropped(self, session: Session) -> None:
        super().dropped(session)
        for waiting in (self._ready, self._late_children):
            if session in waiting:
                waiting.remove(session)

    def over(self, root: Session) -> None:
        self._alive -= 1
        self.gate.release_session()
        if self._all_started and not self._alive and not self.complete:
            self.finish()

    def _wait(self) -> None:
        self.gate.wait(self._send_waiting, turns=bool(self._late_children))

    def _offer_child(self, session: Session) -> None:
        if self.complete:  # by another that was due at the same time
            return
        if self._late_children or not self.gate.take_turn():
            self._late_children.append(session)
            self._wait()
        else:
            self._send_child(session, 0)

    def _send_child(self, session: Session, held_ns: int) -> None:
        n = self.trees.number(session)
        if n is None:  # behind the numbers of all ticks, once over all workers
            n = len(self._due) + session.number * self.context.max_turns + session.turn
        self.send(session, n, -1, held_ns)

    def _send_waiting(self, ready_ns: int | None = None) -> None:
        while self._late_children and not self.complete:
            if not self.gate.take_turn():
                self._wait()
                return
            session = self._late_children.popleft()
            self._send_child(session, max(0, monotonic_ns() - session.due_ns) if session.due_ns >= 0 else 0)
        super()._send_waiting(ready_ns)


class SessionTrees(_TreeDriver, SessionsDriver):
    """Trees begin at their times; later turns and children leave at their recorded times, or after their delay, and never
    before what they wait for."""

    def follow(self, session: Session) -> None:
        if session.stream and session.turn == self.requests.streams(session.entry)[session.stream].first:
            self._alive += 1
        if session.turn >= self._rows[3 * session.number + 1]:  # the phase plans no more of this tree
            self.trees.truncate(session)
            return
        due_ns = self._next_due(session)
        if due_ns <= monotonic_ns():
            self._offer(due_ns, session, max(0, session.answered_ns - due_ns))
        else:
            heappush(self._later, (due_ns, session.number, session.stream, session))
        self._set_timer()

    def dropped(self, session: Session) -> None:
        self._alive -= 1
        self._later[:] = [row for row in self._later if row[-1] is not session]
        heapify(self._later)
        for row in [row for row in self._waiting_turns if row[1] is session]:
            self._waiting_turns.remove(row)

    def over(self, root: Session) -> None:
        self._alive -= 1
        self.gate.release_session()
        if not self.complete:
            self._set_timer()

    def _next_due(self, session: Session) -> int:
        if session.stream and self.phase.spacing_ns is not None:
            due_ns = session.answered_ns + self.requests.delay_ns(session)
        else:
            due_ns = super()._next_due(session)
        return max(due_ns, self.trees.gate_ns(session))

    def _new(self, number: int) -> Session:
        session = super()._new(number)
        self._alive += bool(self.requests.streams(session.entry))  # the tree itself, until it has ended
        return session
