"""Caps of idle time: pending times move earlier where a trace, or the whole run, would wait too long.

Spec: agentic §8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic_ns

from aiperf_driver_agentic.alarms import Alarms
from aiperf_driver_agentic.board import NEVER_NS, Board
from aiperf_driver_agentic.tree import LaneTree, Node

_LOOK_NS = 5_000_000
"""From one look at the other workers to the next, while this one is idle."""


class Caps:
    """The caps of a worker's lanes in one phase.

    *trace_ns*, *system_ns*: None is no cap.  *trees*: those under way.  *set_due*: gives a node another due time.
    shifts, skipped_ns: by cap, how often times moved and by how much in all.
    """

    def __init__(
        self, trace_ns: int | None, system_ns: int | None, board: Board, alarms: Alarms,
        trees: Callable[[], Iterable[LaneTree]], set_due: Callable[[Node, int], None],
    ) -> None:  # fmt: skip
        self._trace_ns, self._system_ns, self._board, self._alarms = trace_ns, system_ns, board, alarms
        self._trees, self._set_due = trees, set_due
        self._looks = self._closed = False
        self._idle_ns = 0
        self.flying = 0
        self.shifts = {"trace": 0, "system": 0}
        self.skipped_ns = {"trace": 0, "system": 0}

    def begin(self, phase: int, at_ns: int) -> None:
        """The phase of that index begins, with nothing in flight."""
        self._board.begin(phase, at_ns)
        self._idle_ns = at_ns
        for tree in self._trees():
            self.rest(tree, at_ns)

    def look(self) -> None:
        """The first times of the phase are known."""
        if not self.flying:
            self._idle()

    def close(self) -> None:
        """Nothing more is sent in the phase."""
        self._closed = True
        if not self.flying:
            self._board.end()

    def left(self) -> None:
        """A request has left."""
        self.flying += 1
        self._board.fly()

    def ended(self, tree: LaneTree, at_ns: int) -> None:
        """A request of the tree is over, and what it made pending is known."""
        self.flying -= 1
        if not tree.flying:
            self.rest(tree, at_ns)
        if self.flying:
            return
        if self._closed:
            self._board.end()
        else:
            self._idle_ns = at_ns
            self._idle()

    def rest(self, tree: LaneTree, at_ns: int) -> None:
        """Nothing of the tree is in flight since *at_ns*."""
        tree.idles += 1
        if self._trace_ns is not None:
            self._alarms.at(at_ns + self._trace_ns, partial(self._wake, tree, tree.idles))

    def _wake(self, tree: LaneTree, idles: int) -> None:
        """The tree was idle for as long as its cap allows, unless something has left since."""
        while not tree.flying and tree.idles == idles:
            now_ns = monotonic_ns()
            later = [node for node in tree.going() if node.due_ns is not None and node.due_ns > now_ns]
            if not later:
                return
            first_ns = min(node.due_ns or 0 for node in later)
            self._move(later, first_ns - now_ns, "trace")

    def _idle(self) -> None:
        """Nothing of this worker is in flight: look whether that holds for the run."""
        if self._system_ns is None:
            return
        self._compare()
        if not (self._looks or self._board.alone):
            self._looks = True
            self._alarms.at(monotonic_ns() + _LOOK_NS, self._look_again)

    def _look_again(self) -> None:
        self._looks = False
        if self.flying:
            self._apply()
        else:
            self._idle()

    def _compare(self) -> None:
        assert self._system_ns is not None
        self._apply()
        if self.flying:  # by a time that has moved into the past
            return
        now_ns = monotonic_ns()
        pending = (node.due_ns for node in self._pending(now_ns) if node.due_ns is not None)
        self._board.rest(self._idle_ns, min(pending, default=NEVER_NS))
        if self._board.leads and (amount_ns := self._board.to_skip_ns(self._system_ns)):
            self._board.skip(amount_ns)
            self._apply()

    def _apply(self) -> None:
        """Move the times by what was decided for all workers."""
        if amount_ns := self._board.unapplied_ns():
            self._move(self._pending(monotonic_ns()), amount_ns, "system")

    def _pending(self, now_ns: int) -> list[Node]:
        return [node for tree in self._trees() for node in tree.going() if node.due_ns is not None and node.due_ns > now_ns]

    def _move(self, nodes: list[Node], amount_ns: int, cap: str) -> None:
        if not nodes:
            return
        self.shifts[cap] += 1
        self.skipped_ns[cap] += amount_ns
        for node in nodes:
            if node.due_ns is not None:
                self._set_due(node, node.due_ns - amount_ns)
