"""The lanes of a worker and their trees, as they begin, grow and end.

Spec: agentic §7, §9; datasets §3.18.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session

from aiperf_driver_agentic.lanes import Cursor, Lane, Root
from aiperf_driver_agentic.recording import Recording
from aiperf_driver_agentic.tree import MS, Fate, LaneTree, Node

if TYPE_CHECKING:
    from aiperf_driver_agentic.driver import AgenticDriver

log = logging.getLogger("aiperf.drivers.agentic")

_LOOK_NS = 2_000_000
"""From one look for the number of the next root to the next one."""


class Grove:
    """What grows in one phase.  *before*: of the phase before, whose lanes go on.

    lanes: of this worker.  cursor: the roots to come.  trees: those under way, with their lanes, by the number of the root.
    ended: trees that have.  overflows: requests that were longer than the model's context.  waiting: lanes for which the number
    of the next root has not come yet.
    """

    lanes: list[Lane]
    cursor: Cursor
    trees: dict[int, tuple[Lane, LaneTree]]

    def __init__(self, driver: AgenticDriver, before: Grove | None) -> None:
        context = driver.context
        self._driver, self._context, self._requests, self._phase = driver, context, context.requests, context.phase
        self.ended = self.overflows = self.waiting = 0
        if before is not None:
            self.lanes, self.cursor, self.trees = before.lanes, before.cursor, before.trees
        else:
            lanes = range(context.shard, self._phase.concurrency or 1, context.shards)
            self.lanes = [Lane(number) for number in lanes]
            self.cursor = Cursor(self._requests, self._phase, context.session_numbers)
            self.trees = {}

    def under_way(self) -> Iterator[LaneTree]:
        """The trees of the lanes."""
        return (lane.tree for lane in self.lanes if lane.tree is not None)

    def of(self, session: Session) -> tuple[Lane, Node]:
        """The lane of a session, and its stream."""
        lane, tree = self.trees[session.number]
        return lane, tree.nodes[session.stream]

    def open(self, lane: Lane, root: Root, recording: Recording, tree: LaneTree) -> None:
        """The lane holds the tree from now on."""
        lane.tree, self.trees[root.number] = tree, (lane, tree)
        cut = tree.cut
        self._context.tell({
            "event": "tree", "phase": self._phase.index, "session": root.number, "entry": root.entry, "lane": lane.number,
            "lap": root.lap, "at_ns": monotonic_ns(), "cut": None if cut is None else [cut.share, sorted(cut.going)],
            "ahead": tree.ahead(),
        })  # fmt: skip

    def root_session(self, lane: Lane, root: Root) -> Session:
        """The session of a root that begins in the lane."""
        session = self._requests.session(self._phase, root.number, root.entry)
        session.lane, session.lap = lane.number, root.lap
        session.limit = 1 if self._driver.warmup is not None else None
        return session

    def open_next(self, lane: Lane, at_ns: int) -> None:
        """The lane takes the next root, at its first turn; it stays empty where the phase takes no more."""
        if not self.cursor.ready:
            self.waiting += 1
            self._driver.alarms.at(monotonic_ns() + _LOOK_NS, partial(self._open_late, lane))
            return
        root = self.cursor.next()
        if self._phase.session_count is not None and root.ordinal >= self._phase.session_count:
            return
        recording, session = Recording(self._requests, root.entry), self.root_session(lane, root)
        tree = LaneTree(recording, session, None)
        self.open(lane, root, recording, tree)
        session.answered_ns = at_ns
        self._begin_stream(tree, session, at_ns)

    def _open_late(self, lane: Lane) -> None:
        self.waiting -= 1
        self.open_next(lane, monotonic_ns())
        self._driver.finish_if_done()

    def _begin_stream(self, tree: LaneTree, session: Session, at_ns: int) -> None:
        """A stream begins at *at_ns*, with the children that it starts before its first turn."""
        one = tree.recording.streams[session.stream]
        node = tree.add(session.stream, session, one.first)
        for branch in tree.branches_after(node, None):
            self._begin_branch(node, branch, at_ns)
        if one.turns:
            self._driver.schedule(node, at_ns)
        else:
            self.end_stream(node, Fate.ENDED, at_ns)

    def _begin_branch(self, node: Node, number: int, at_ns: int) -> None:
        branch, tree = node.stream.branches[number], node.tree
        offsets = branch.offsets_ms or (0.0,) * len(branch.children)
        pause_ms = 0.0
        if branch.pause is not None:
            label = f"pause:{self._phase.name}:{node.stream.id}:{number}"
            drawn = (uniform(self._context.seed, f"{label}:{part}", tree.root.number) for part in ("radius", "angle"))
            pause_ms = branch.pause.drawn_ms(*drawn)
        for child, offset_ms in zip(branch.children, offsets, strict=True):
            session = self._requests.child(node.session, child)
            session.answered_ns = at_ns
            wait_ns = 0 if self._driver.warmup is not None else round((pause_ms + offset_ms) * MS)
            self._begin_stream(tree, session, at_ns + wait_ns)

    def end_stream(self, node: Node, fate: Fate, at_ns: int) -> None:
        """The stream sends nothing more; what waited for its end begins."""
        for branch in node.tree.end(node, fate):
            self._begin_branch(node.tree.nodes[node.stream.parent], branch, at_ns)

    def cut_off(self, node: Node, fate: Fate, at_ns: int) -> None:
        """The node's request has returned, and is the last of its stream."""
        node.place += 1
        self.end_stream(node, fate, at_ns)

    def go_on(self, lane: Lane, node: Node, at_ns: int) -> None:
        """Behind an answer: what it starts, and the stream's next turn."""
        session, tree = node.session, node.tree
        if session.overflowed:
            self.overflows += 1
            self.cut_off(node, Fate.OVERFLOWED, at_ns)
        elif session.failed and node.number:
            self.cut_off(node, Fate.FAILED, at_ns)
        else:
            self.step(node, at_ns)
        self.settle(lane, tree, at_ns)

    def left(self, node: Node, at_ns: int) -> None:
        """The root's request has left at *at_ns*: branches that began before its recorded end begin at their distance."""
        tree, times = node.tree, node.tree.recording.times
        if times is None or node.number:
            return
        start_ns, end_ns = times[node.place]
        for number in tree.branches_within(node, node.place - node.stream.first, end_ns):
            begun_ms = node.stream.branches[number].start_ms or 0.0
            wait_ns = 0 if self._driver.warmup is not None else max(0, round(begun_ms * MS) - start_ns)
            self._begin_branch(node, number, at_ns + wait_ns)

    def step(self, node: Node, at_ns: int) -> None:
        """The node's request has returned at *at_ns*: its branches begin, and the next turn is due."""
        tree, turn = node.tree, node.place - node.stream.first
        node.place += 1
        for branch in tree.branches_after(node, turn):
            self._begin_branch(node, branch, at_ns)
        if node.place >= node.stream.end:
            self.end_stream(node, Fate.ENDED, at_ns)
            return
        node.session.turn = node.place
        tree.prepare(node)
        self._driver.schedule(node, at_ns if self._driver.warmup is not None else at_ns + self._requests.delay_ns(node.session))

    def settle(self, lane: Lane, tree: LaneTree, at_ns: int) -> None:
        """Let go who waited for what has returned at *at_ns*, and give the lane another tree behind the last of this one."""
        for node in list(tree.going()):
            if node.blocked and node.look(at_ns):
                self._driver.try_to_send(node)
        if not (tree.flying or tree.over):
            self._unlock(tree, at_ns)
        if tree.over and lane.tree is tree:
            self.tell_fates(tree)
            lane.tree = None
            del self.trees[tree.root.number]
            self.ended += 1
            if not self._driver.complete and (self._driver.warmup is None or self._driver.warmup.goes_on(lane)):
                self.open_next(lane, at_ns)

    def _unlock(self, tree: LaneTree, at_ns: int) -> None:
        """A tree whose record contradicts itself, so that all wait for each other, goes on without the order of the record."""
        going = list(tree.going())
        if any(node.due_ns is None or not node.blocked for node in going):
            return
        held = next((node for node in going if node.order and not node.joins()), None)
        if held is not None:
            log.warning("trace %s: its requests wait for each other; turn %d goes on", tree.recording.name, held.place)
            held.order = ()
            held.look(at_ns)
            self._driver.try_to_send(held)

    def tell_fates(self, tree: LaneTree) -> None:
        """Tell of the turns that the tree has not sent, and why."""
        ended = {"event": "tree_end", "phase": self._phase.index, "session": tree.root.number, "at_ns": monotonic_ns()}
        self._context.tell({**ended, "fates": tree.fates()})
