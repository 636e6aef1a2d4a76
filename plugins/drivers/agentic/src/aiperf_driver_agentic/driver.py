"""The driver of lanes: recorded trees of conversations, cut, warmed up and gone on with.

Spec: agentic §5–§9, §11.  A lane holds one tree at a time; lanes are shared out among the workers, and a tree stays on its
worker.  A warmup that lives on hands its lanes to the driver of the next phase in the same process.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from time import monotonic_ns

from aiperf.sdk.driver import Driver, DriverContext, Session, Timer

from aiperf_driver_agentic.alarms import Alarms
from aiperf_driver_agentic.board import Board
from aiperf_driver_agentic.caps import Caps
from aiperf_driver_agentic.grove import Grove
from aiperf_driver_agentic.options import AgenticOptions
from aiperf_driver_agentic.overflow import overflow_words
from aiperf_driver_agentic.tree import Node
from aiperf_driver_agentic.warmup import Warmup

log = logging.getLogger("aiperf.drivers.agentic")

_NS_PER_S = 1_000_000_000


class AgenticDriver(Driver[AgenticOptions]):
    """One phase of a worker's lanes.

    grove: its lanes and their trees.  warmup: None in the phase that is measured.  stopped: somebody else has ended the phase.
    """

    grove: Grove

    def __init__(self, options: AgenticOptions | None, context: DriverContext) -> None:
        super().__init__(options or AgenticOptions(), context)
        self.overflow_words = overflow_words()
        self.board = Board(context.notes, context.shard)
        self.alarms = Alarms(context.timer)
        before = context.before
        self._handed: Grove | None = before.grove if isinstance(before, AgenticDriver) else None
        self.grove = Grove(self, self._handed)
        self.warmup = Warmup(self, self.options) if self.phase.lives_on else None
        self._ready: deque[Node] = deque()
        self._grace: Timer | None = None
        system_ns, trace_ns = _ns(self.options.system_gap_cap_s), _ns(self.options.trace_gap_cap_s)
        trace_ns = None if self.warmup else trace_ns
        self.caps = Caps(trace_ns, system_ns, self.board, self.alarms, self.grove.under_way, self.schedule)
        self.stopped = self._timed_out = False

    # The phase

    def begin(self, start_ns: int) -> None:
        if self.warmup is not None:
            self.warmup.begin(start_ns)
            return
        grove = self.grove
        if self._handed is None and self.phase.index:  # in the place of a process that has died: its trees are lost
            grove.cursor.first_trees(self.options, self.context.seed)
        self.caps.begin(self.phase.index, start_ns)
        for lane in grove.lanes:
            if lane.tree is None:
                grove.open_next(lane, start_ns)
                continue
            offsets = {node: lane.tree.offset_ns(node) for node in lane.tree.going()}
            least_ns = min(offsets.values()) if self.options.burst else self.board.least_ns
            for node, offset_ns in offsets.items():
                self.schedule(node, start_ns + max(0, offset_ns - least_ns))
        self.caps.look()
        self.finish_if_done()

    def finish(self) -> None:
        if self.complete:
            return
        if self.warmup is None or self.stopped:
            self._tell_end()
        self.alarms.close()
        super().finish()
        self.caps.close()
        if self.warmup is not None:
            self.warmup.rest(self.caps.flying)

    def stop(self) -> None:
        self.stopped = self.stopped or not (self.complete or self._timed_out)
        super().stop()

    def request_ended(self, session: Session) -> None:
        (lane, node), at_ns = self.grove.of(session), session.answered_ns
        node.tree.flying -= 1
        node.tree.latest = node.place
        node.flying = False
        if self.warmup is not None:
            self.warmup.ended(lane, node)
        elif not self.complete:
            self.grove.go_on(lane, node, at_ns)
        self.caps.ended(node.tree, at_ns)
        if self.complete and self.warmup is not None:
            self.warmup.rest(self.caps.flying)
        elif not self.complete:
            self.finish_if_done()

    def give_up(self, sentence: str) -> None:
        """End the run."""
        self.context.give_up(sentence)
        if not self.complete:
            self._tell_end()
            self.finish()

    def drain_within(self, grace_s: float | None) -> None:
        """All requests in flight must be over in so many seconds; None gives them any time."""
        if grace_s is not None and self._grace is None:
            self._grace = self.context.timer(self._abort)
            self._grace.set(monotonic_ns() + round(grace_s * _NS_PER_S))

    def _abort(self) -> None:
        self._timed_out = True
        self.requests.abort_all()

    def drained(self) -> None:
        """They are over."""
        if self._grace is not None:
            self._grace.close()
            self._grace = None

    # Sending

    def schedule(self, node: Node, due_ns: int) -> None:
        """The node's next turn is due at *due_ns*."""
        node.due_ns = due_ns
        node.version += 1
        if due_ns > monotonic_ns():
            self.alarms.at(due_ns, partial(self._ring, node, node.version))
        else:
            self.try_to_send(node)

    def _ring(self, node: Node, version: int) -> None:
        if node.version == version:
            self.try_to_send(node)

    def try_to_send(self, node: Node) -> None:
        """Send the node's next turn where it is due, nothing holds it, and there is a slot."""
        now_ns = monotonic_ns()
        if self.complete or node.fate is not None or node.due_ns is None or node.due_ns > now_ns:
            return
        if self.warmup is not None and self.warmup.holds(node):
            return
        if not (self.warmup is not None and self.warmup.priming) and not node.look(now_ns):
            return
        if self._ready or not self.gate.take_turn():
            if node not in self._ready:
                self._ready.append(node)
            self.gate.wait(self._fill, turns=True)
        else:
            self._send_turn(node, 0)

    def _fill(self) -> None:
        while self._ready and not self.complete:
            if not self.gate.take_turn():
                self.gate.wait(self._fill, turns=True)
                return
            node = self._ready.popleft()
            if node.due_ns is None or (self.warmup is not None and self.warmup.holds(node)):
                self.gate.release_prefill(quiet=True)
            else:
                self._send_turn(node, max(0, monotonic_ns() - max(node.due_ns, node.free_ns)))
        if not self.complete:
            self.gate.stop_waiting()

    def _send_turn(self, node: Node, held_ns: int) -> None:
        n = self.context.arrival_numbers.next()
        if self.phase.request_count is not None and n >= self.phase.request_count:
            self.gate.release_prefill(quiet=True)
            self.finish()
            return
        session, tree = node.session, node.tree
        due_ns = max(node.due_ns or 0, node.free_ns)
        if self.warmup is not None and not self.warmup.priming:
            due_ns = -1
        session.turn, session.phase, session.due_ns = node.place, self.phase.index, due_ns
        session.limit, session.held_by = None if self.warmup is None else 1, node.held_by
        node.due_ns, node.flying = None, True
        tree.flying += 1
        tree.sent += 1
        self.caps.left()
        self.send(session, n, due_ns, held_ns)
        if self.warmup is not None:
            self.warmup.sent(self.grove.of(session)[0])
        if not (self.warmup is not None and self.warmup.priming):
            self.grove.left(node, monotonic_ns())

    # Ends

    def finish_if_done(self) -> None:
        """End the phase where no lane holds a tree, or is to take one."""
        grove = self.grove
        if self.warmup is None and not (self.complete or grove.waiting or any(lane.tree for lane in grove.lanes)):
            self.finish()

    def _tell_end(self) -> None:
        caps, grove = self.caps, self.grove
        for tree in grove.under_way():
            grove.tell_fates(tree)
        self.context.tell({
            "event": "lanes", "phase": self.phase.index, "shifts": caps.shifts, "skipped_ns": caps.skipped_ns,
            "overflows": grove.overflows, "recycled": grove.ended,
        })  # fmt: skip
        ended = self.context.shard, grove.ended, grove.overflows
        log.info("lanes of worker %d: %d trees ended, %d context overflows", *ended)
        for cap, shifts in caps.shifts.items():
            if shifts:
                skipped_s = caps.skipped_ns[cap] / _NS_PER_S
                log.info("the cap of idle gaps of the %s moved times %d times, by %.1f s in all", cap, shifts, skipped_s)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * _NS_PER_S)
