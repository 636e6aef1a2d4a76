"""Trees under way: which stream may send its next turn, and what it waits for (spec: datasets §3.18)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from time import monotonic_ns
from typing import Protocol

from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import DriverContext, Session, Timer
from aiperf.sdk.trees import Branch, Pause, Stream

_MS = 1_000_000
"""Nanoseconds in a millisecond."""
_FAIL_FAST = "AIPERF_DAG_FAIL_FAST"
"""The variable: 1 ends a parent and its other children where a child fails."""
_NOT_BEGUN = -1
"""In place of a branch's children that have not ended: it has not begun."""


class Host(Protocol):
    """What a driver does for its trees."""

    def follow(self, session: Session) -> None:
        """Send the session's current turn when it is due and has its slot."""

    def dropped(self, session: Session) -> None:
        """The session ends before its last turn was sent."""

    def over(self, root: Session) -> None:
        """The tree has ended: its slot is free."""


class _Node:
    """A stream that has begun.

    left: children of each branch that have not ended, _NOT_BEGUN before the branch begins.  gate_ns: the current turn leaves
    not before, 0 for no bound.  parked: its next turn waits for children.  next: the place of its first unsent turn.  sent: its
    last turn has left.  over: it sends nothing more.  aborted: a child's failure ended it.  cut: the phase did.
    """

    __slots__ = ("aborted", "cut", "gate_ns", "left", "next", "over", "parked", "sent", "session", "stream")

    def __init__(self, stream: Stream, session: Session) -> None:
        self.stream, self.session = stream, session
        self.left = [_NOT_BEGUN] * len(stream.branches)
        self.gate_ns, self.next = 0, stream.first
        self.parked = self.sent = self.over = self.aborted = self.cut = False

    def waits(self, turn: int) -> bool:
        """Whether the turn, counted in the stream, waits for a branch."""
        return any(branch.joins == turn and left != 0 for branch, left in zip(self.stream.branches, self.left, strict=True))


class _Tree:
    """flying: requests in flight.  busy: streams that will send something without another stream's end, and starts to come.

    number: of the arrival of a root that sends nothing, for the first request of its tree; None once used.
    latest: the place of the turn that returned last, -1 before any.
    """

    __slots__ = ("busy", "flying", "latest", "nodes", "number", "root", "streams")

    def __init__(self, root: Session, streams: Sequence[Stream]) -> None:
        self.root, self.streams = root, streams
        self.nodes: dict[int, _Node] = {}
        self.busy = self.flying = 0
        self.latest = -1
        self.number: int | None = None


class Trees:
    """The trees of one worker's share of a phase.  stopped: nothing more is sent.  sent: requests of all trees so far."""

    def __init__(self, context: DriverContext, host: Host) -> None:
        self._context, self._requests, self._host = context, context.requests, host
        self._trees: dict[int, _Tree] = {}
        self._starts: list[tuple[int, int, Callable[[int], None]]] = []  # a heap: due, order, callback
        self._order = count()
        self._timer: Timer | None = None
        self._fail_fast = os.environ.get(_FAIL_FAST, "").strip().lower() in ("1", "true", "yes", "on")
        # Where the plan knows the number of trees, each of their turns is an arrival.
        self._tells = context.phase.session_count is None and context.phase.sessions_file is None
        self.stopped = False
        self.sent = 0

    def __bool__(self) -> bool:
        return bool(self._trees)

    def has(self, session: Session) -> bool:
        """Whether the session is of a tree under way."""
        return session.number in self._trees

    def begin(self, root: Session, n: int, send: Callable[[], None]) -> bool:
        """Begin the tree of a new session, which *send* sends; False for a conversation that starts no others.

        *n*: number of its arrival.  The slot of a root that sends nothing goes to the first request of its tree.
        """
        streams = self._requests.streams(root.entry)
        if not streams:
            return False
        tree = self._trees[root.number] = _Tree(root, streams)
        node = tree.nodes[0] = _Node(streams[0], root)
        tree.busy = 1
        now_ns = monotonic_ns()
        silent = not streams[0].turns
        if silent:  # before its children look for one
            tree.number = n
            self._context.gate.release_prefill(quiet=True)
        self._fire(tree, node, None, now_ns)
        if not (silent or self.stopped):
            send()
            return True
        if not silent:
            self._context.gate.release_prefill(quiet=True)
        self._end(tree, node, now_ns)
        self._settle(tree)
        return True

    def number(self, session: Session) -> int | None:
        """The number of an arrival that the session's tree has left, once."""
        tree = self._trees[session.number]
        number, tree.number = tree.number, None
        return number

    def gate_ns(self, session: Session) -> int:
        """The session's current turn leaves not before this instant (monotonic); 0 is no bound."""
        tree = self._trees.get(session.number)
        return 0 if tree is None else tree.nodes[session.stream].gate_ns

    def left(self, session: Session) -> None:
        """A request of the session has left."""
        tree = self._trees[session.number]
        tree.flying += 1
        self.sent += 1
        node = tree.nodes[session.stream]
        node.next, node.sent = session.turn + 1, session.last

    def ended(self, session: Session) -> None:
        """A request of the session is over."""
        tree = self._trees[session.number]
        tree.flying -= 1
        tree.latest = session.turn
        node = tree.nodes[session.stream]
        if not self.stopped and not node.over:
            self._go_on(tree, node, session)
        self._settle(tree)

    def truncate(self, session: Session) -> None:
        """The phase makes no more requests: the stream ends before its current turn."""
        tree = self._trees[session.number]
        node = tree.nodes[session.stream]
        node.cut = True
        self._end(tree, node, monotonic_ns())
        self._settle(tree)

    def stop(self) -> None:
        """Send nothing more: what waits is dropped, and a tree ends with its requests in flight."""
        if self.stopped:
            return
        self.stopped = True
        self._starts.clear()
        if self._timer is not None:
            self._timer.close()
        for tree in list(self._trees.values()):
            self._settle(tree)

    def _go_on(self, tree: _Tree, node: _Node, session: Session) -> None:
        """Behind an answer: what it starts, then the stream's next turn."""
        at_ns, turn = session.answered_ns, session.turn - node.stream.first
        if session.failed and session.stream:
            family = tree.nodes[node.stream.parent] if self._fail_fast else node
            ended = family.over  # before a background child has failed: whoever waited for it knows
            if self._fail_fast:
                self._abort(tree, family)
            if not ended:
                self._end(tree, family, at_ns)
            return
        self._fire(tree, node, turn, at_ns)
        if session.last:
            self._end(tree, node, at_ns)
        elif node.waits(turn + 1):
            node.parked = True
            tree.busy -= 1
        else:
            self._follow(node, 0)

    def _follow(self, node: _Node, gate_ns: int, held_by: int = -1) -> None:
        if self.stopped:  # by a child that was sent just now
            return
        node.session.turn += 1
        node.session.held_by = held_by
        node.gate_ns = gate_ns
        self._host.follow(node.session)

    def _fire(self, tree: _Tree, node: _Node, turn: int | None, at_ns: int) -> None:
        """Begin the branches that come after the turn, and wait for no other branch."""
        for number, branch in enumerate(node.stream.branches):
            if branch.after == turn and node.left[number] == _NOT_BEGUN and _free(node, branch):
                self._begin_branch(tree, node, number, at_ns)

    def _begin_branch(self, tree: _Tree, node: _Node, number: int, at_ns: int) -> None:
        branch = node.stream.branches[number]
        node.left[number] = len(branch.children)
        tree.busy += len(branch.children)
        pause_ns = 0 if branch.pause is None else self._drawn_ns(tree, node, number, branch.pause)
        offsets = branch.offsets_ms or (0.0,) * len(branch.children)
        for child, offset_ms in zip(branch.children, offsets, strict=True):
            wait_ns = pause_ns + round(offset_ms * _MS)
            if wait_ns:
                self._at(at_ns + wait_ns, partial(self._start, tree, node, child, planned=True))
            else:
                self._start(tree, node, child, at_ns, planned=False)

    def _drawn_ns(self, tree: _Tree, node: _Node, branch: int, pause: Pause) -> int:
        """The branch's time before it begins, in this tree."""
        if not pause.sigma:
            return round(pause.median_ms * _MS)
        phase, seed = self._context.phase.name, self._context.seed
        label = f"pause:{phase}:{node.stream.id}:{branch}"
        radius, angle = (uniform(seed, f"{label}:{part}", tree.root.number) for part in ("radius", "angle"))
        return round(pause.drawn_ms(radius, angle) * _MS)

    def _at(self, at_ns: int, call: Callable[[int], None]) -> None:
        heappush(self._starts, (at_ns, next(self._order), call))
        if self._timer is None:
            self._timer = self._context.timer(self._wake)
        self._timer.set(self._starts[0][0])

    def _wake(self) -> None:
        starts = self._starts
        while starts and starts[0][0] <= monotonic_ns():
            at_ns, _, call = heappop(starts)
            call(at_ns)
        if starts and self._timer is not None:
            self._timer.set(starts[0][0])

    def _start(self, tree: _Tree, parent: _Node, child: int, at_ns: int, *, planned: bool) -> None:
        """Begin a stream at *at_ns*; *planned*: that is later than what started it."""
        if parent.aborted or self.stopped:
            tree.busy -= 1
            self._settle(tree)
            return
        session = self._requests.child(parent.session, child)
        session.answered_ns = at_ns
        node = tree.nodes[child] = _Node(tree.streams[child], session)
        node.gate_ns = at_ns if planned else 0
        self._fire(tree, node, None, at_ns)
        if node.stream.turns:
            self._host.follow(session)
        else:
            self._end(tree, node, at_ns)

    def _end(self, tree: _Tree, node: _Node, at_ns: int) -> None:
        """The stream sends nothing more: those that wait for its end go on."""
        self._close(tree, node)
        if node.stream.parent < 0:
            return
        parent, child = tree.nodes[node.stream.parent], node.session.stream
        number = next(number for number, branch in enumerate(parent.stream.branches) if child in branch.children)
        parent.left[number] -= 1
        if parent.left[number] or parent.aborted or self.stopped:
            return
        for further, branch in enumerate(parent.stream.branches):
            if number in branch.behind and parent.left[further] == _NOT_BEGUN and _free(parent, branch):
                self._begin_branch(tree, parent, further, at_ns)
        turn = parent.session.turn - parent.stream.first + 1
        if parent.parked and not parent.waits(turn):
            parent.parked = False
            tree.busy += 1
            self._follow(parent, at_ns, tree.latest)

    def _close(self, tree: _Tree, node: _Node) -> None:
        if not (node.sent or node.over) and node.stream.turns:
            self._host.dropped(node.session)
        tree.busy -= 0 if node.parked or node.over else 1
        node.over, node.parked = True, False

    def _abort(self, tree: _Tree, node: _Node) -> None:
        """Close a stream and its descendants: requests in flight end by themselves, and nothing follows."""
        for one in tree.nodes.values():
            if one is node or _descends(tree, one, node):
                one.aborted = True
                self._close(tree, one)

    def _settle(self, tree: _Tree) -> None:
        """End the tree once nothing of it is in flight or to come."""
        if tree.flying or (tree.busy > 0 and not self.stopped) or self._trees.get(tree.root.number) is not tree:
            return
        del self._trees[tree.root.number]
        if self._tells and (fates := list(_fates(tree, stopped=self.stopped))):
            about = {"event": "tree_end", "phase": self._context.phase.index, "session": tree.root.number}
            self._context.tell({**about, "fates": fates})
        self._host.over(tree.root)


def _fates(tree: _Tree, *, stopped: bool) -> Iterator[tuple[int, int, str]]:
    """Number of each stream with unsent turns, the place of the first of them, and why they are not sent."""
    stopped = stopped or any(node.cut for node in tree.nodes.values())
    for number, stream in enumerate(tree.streams):
        node, ancestor = tree.nodes.get(number), number
        while ancestor not in tree.nodes:
            ancestor = tree.streams[ancestor].parent
        nearest = tree.nodes[ancestor]
        done = nearest.cut or not nearest.stream.turns or (nearest.sent and not nearest.aborted)
        ended = nearest.over and not done
        if (first := stream.first if node is None else node.next) < stream.end:
            yield number, first, "truncated" if stopped and not ended else "released"


def _free(node: _Node, branch: Branch) -> bool:
    """Whether the branches that this one waits for have ended."""
    return all(node.left[earlier] == 0 for earlier in branch.behind)


def _descends(tree: _Tree, node: _Node, ancestor: _Node) -> bool:
    parent = node.stream.parent
    while parent >= 0:
        if tree.nodes[parent] is ancestor:
            return True
        parent = tree.nodes[parent].stream.parent
    return False
