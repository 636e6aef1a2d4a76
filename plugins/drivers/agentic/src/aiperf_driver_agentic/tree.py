"""A tree under way in a lane: which of its streams may send, and what each of them waits for.

Spec: agentic §7, datasets §3.18.  Nothing here sends or reads a clock: the driver asks and tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from aiperf.sdk.driver import Session
from aiperf.sdk.trees import Stream

from aiperf_driver_agentic.cuts import Cut
from aiperf_driver_agentic.recording import Recording

MS = 1_000_000
"""Nanoseconds in a millisecond."""
_NOT_BEGUN = -1
"""In place of a branch's children that have not ended: it has not begun."""


class Fate(StrEnum):
    """Why a stream sent no more of its turns."""

    ENDED = "ended"
    FAILED = "failed"
    OVERFLOWED = "overflowed"
    RELEASED = "released"
    TRUNCATED = "truncated"


class Node:
    """A stream that has begun.

    place: of its next turn.  due_ns: when that is due, monotonic, without what it waits for; None while a request is in flight
    and before a phase says.  blocked: the next turn waits for children or for the order of the record; free_ns: since when it
    does no more, 0 where it didn't.  order: requests of other streams that must have returned.  left: children of each branch
    that have not ended.  flying: the request at *place* is in flight.  fate: None while the stream goes on.  version: counts
    up with each due time.  held_by: the place of the turn of another stream for whose end the next turn waited, -1 for none.
    """

    __slots__ = (
        "blocked", "due_ns", "fate", "flying", "free_ns", "held_by", "left", "order", "place", "session", "stream", "tree",
        "version",
    )  # fmt: skip

    def __init__(self, tree: LaneTree, stream: Stream, session: Session, place: int) -> None:
        self.tree, self.stream, self.session, self.place = tree, stream, session, place
        self.due_ns: int | None = None
        self.free_ns = self.version = 0
        self.held_by = -1
        self.blocked = self.flying = False
        self.order: tuple[tuple[int, int], ...] = ()
        self.left = [_NOT_BEGUN] * len(stream.branches)
        self.fate: Fate | None = None

    @property
    def number(self) -> int:
        """The number of the stream."""
        return self.session.stream

    def joins(self) -> bool:
        """Whether the next turn waits for children."""
        turn = self.place - self.stream.first
        return any(branch.joins == turn and left for branch, left in zip(self.stream.branches, self.left, strict=True))

    def look(self, at_ns: int) -> bool:
        """Whether the next turn may leave as far as others are concerned; *at_ns*: what it waited for came to an end then."""
        if self.order:
            self.order = tuple(each for each in self.order if not self.tree.returned(*each))
        blocked = bool(self.order) or self.joins()
        if self.blocked and not blocked:
            self.free_ns, self.held_by = at_ns, self.tree.latest
        self.blocked = blocked
        return not blocked


class LaneTree:
    """One execution of a trace.

    zero_ns: the instant of the trace's clock from which offsets at the start of profiling count.  cut: None where it begins at
    its first turn.  flying: requests in flight.  idles: counts the times that it began to be idle.  sent: requests so far.
    latest: the place of the turn that returned last, -1 before any.
    """

    def __init__(self, recording: Recording, root: Session, cut: Cut | None) -> None:
        self.recording, self.root, self.cut = recording, root, cut
        self.nodes: dict[int, Node] = {}
        self.history = frozenset[int]() if cut is None else cut.begun - cut.going.keys()
        self.dead: set[int] = set()
        self.flying = self.idles = self.sent = 0
        self.latest = -1
        if cut is not None and cut.at_ns is not None:
            self.zero_ns: int | None = cut.at_ns
        else:
            self.zero_ns = None if cut is not None or recording.times is None else min(start for start, _ in recording.times)

    @property
    def over(self) -> bool:
        """Whether root and descendants have ended, and nothing is in flight."""
        return not self.flying and all(node.fate is not None for node in self.nodes.values())

    def going(self) -> Iterator[Node]:
        """The streams that go on."""
        return (node for node in self.nodes.values() if node.fate is None)

    def offset_ns(self, node: Node) -> int:
        """When the node's next turn was recorded, counted from the tree's zero; 0 without times."""
        times = self.recording.times
        return 0 if times is None or self.zero_ns is None else times[node.place][0] - self.zero_ns

    def add(self, stream: int, session: Session, place: int) -> Node:
        """A stream begins, or goes on, at the turn at *place*."""
        node = self.nodes[stream] = Node(self, self.recording.streams[stream], session, place)
        if self.cut is not None:
            for number, branch in enumerate(node.stream.branches):
                if (stream, number) in self.cut.branches:
                    node.left[number] = sum(child in self.cut.going for child in branch.children)
        self.prepare(node)
        return node

    def prepare(self, node: Node) -> None:
        """The node's next turn waits from now on for what had returned when it was recorded."""
        node.free_ns, node.blocked, node.held_by = 0, False, -1
        if node.place < node.stream.end:
            node.order = self.recording.ended_before(node.number, node.place)

    def returned(self, stream: int, place: int) -> bool:
        """Whether a request has returned, or will never be sent."""
        node = self.nodes.get(stream)
        if node is None:
            return stream in self.history or stream in self.dead
        return node.fate is not None or place < node.place

    def branches_after(self, node: Node, turn: int | None) -> list[int]:
        """The branches that begin behind the node's *turn*, None: before its first; they have begun then."""
        return [
            number for number, branch in enumerate(node.stream.branches)
            if branch.after == turn and node.left[number] == _NOT_BEGUN and self._begin(node, number)
        ]  # fmt: skip

    def branches_within(self, node: Node, turn: int, end_ns: int) -> list[int]:
        """The branches of the node's *turn* that were recorded to begin before *end_ns*, when that turn ended; they have begun
        then.  Forks need the answer, and wait for it."""
        return [
            number for number, branch in enumerate(node.stream.branches)
            if branch.after == turn and branch.start_ms is not None and branch.start_ms * MS < end_ns and not branch.forks
            and node.left[number] == _NOT_BEGUN and self._begin(node, number)
        ]  # fmt: skip

    def end(self, node: Node, fate: Fate) -> list[int]:
        """The stream sends nothing more: who joins it has one child less to wait for.

        Returns:
            The branches of its parent that begin now, because the stream was the last that they waited for.
        """
        node.fate, node.due_ns = fate, None
        if fate is not Fate.ENDED:  # nothing begins the others
            for branch, left in zip(node.stream.branches, node.left, strict=True):
                if left == _NOT_BEGUN:
                    self._bury(branch.children)
        parent = self.nodes.get(node.stream.parent)
        if parent is None:
            return []
        number, _ = self.recording.branch_of(node.number)
        parent.left[number] -= 1
        if parent.left[number] or parent.fate not in (None, Fate.ENDED):
            return []
        return [
            further for further, branch in enumerate(parent.stream.branches)
            if number in branch.behind and parent.left[further] == _NOT_BEGUN and self._begin(parent, further)
        ]  # fmt: skip

    def _begin(self, node: Node, number: int) -> bool:
        """Begin a branch, where those that it waits for have ended."""
        branch = node.stream.branches[number]
        if any(node.left[earlier] for earlier in branch.behind):
            return False
        node.left[number] = len(branch.children)
        return True

    def _bury(self, children: tuple[int, ...]) -> None:
        for child in children:
            self.dead.add(child)
            for branch in self.recording.streams[child].branches:
                self._bury(branch.children)

    def ahead(self) -> list[tuple[int, int]] | None:
        """The streams that have something to send when the tree begins, each with its first place; None is all, from their
        first turns."""
        cut = self.cut
        if cut is None:
            return None
        first = cut.going | cut.primers
        return [
            (stream, first.get(stream, one.first)) for stream, one in enumerate(self.recording.streams)
            if one.turns and stream not in self.history
        ]  # fmt: skip

    def fates(self) -> list[tuple[int, int, str]]:
        """Rows of the streams that have unsent turns: the number, the first unsent place, and why."""
        rows = []
        for stream, one in enumerate(self.recording.streams):
            node = self.nodes.get(stream)
            if node is None:
                if stream not in self.history and one.turns:
                    rows.append((stream, one.first, str(Fate.RELEASED if stream in self.dead else Fate.TRUNCATED)))
            elif (unsent := node.place + node.flying) < one.end:
                rows.append((stream, unsent, str(node.fate or Fate.TRUNCATED)))
        return rows
