"""Conversations that start others: the streams of a tree, and what starts and holds each.

A tree is one entry of a data set.  The turns of all its streams stand in ``Conversation.turns``, those of a stream one behind
the other, and ``Conversation.streams`` says which is whose: stream 0 is the root's, the others are its descendants'.  A run
draws trees, never a stream alone; each drawing begins all streams anew.  (Spec: datasets §3.18.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, ValidationError, convert


class Pause(Struct, frozen=True, omit_defaults=True):
    """Time before a branch begins, in ms: *median_ms* itself, or log-normal with that median and *sigma*, drawn for each tree.

    least_ms, most_ms: bounds of what is drawn; None is none.
    """

    median_ms: float
    sigma: float = 0.0
    least_ms: float | None = None
    most_ms: float | None = None

    def drawn_ms(self, one: float, other: float) -> float:
        """The time for two independent numbers from 0 up to 1."""
        if not self.sigma:
            return self.median_ms
        normal = math.sqrt(-2 * math.log(1 - one)) * math.cos(2 * math.pi * other)  # Box and Muller
        drawn_ms = max(self.median_ms * math.exp(self.sigma * normal), self.least_ms or 0.0)
        return drawn_ms if self.most_ms is None else min(drawn_ms, self.most_ms)


class Branch(Struct, frozen=True, omit_defaults=True):
    """Streams that begin together.

    children: their numbers.  after: the turn behind whose answer they begin, counted in its stream from 0; None before its
    first turn.  joins: the later turn that waits until all of them have ended; None: no turn waits (a background branch).
    forks: the children begin with all that their parent has said up to the turn *after*, its answer included.
    offsets_ms: how much later than the branch each child begins; () is at once.
    behind: earlier branches of the stream, by number, that must have ended before this one begins.  pause: before it begins,
    counted from there.
    start_ms: when it began on the clock of ``Turn.recorded_ms``; *offsets_ms* count from it.  None where that isn't recorded.
    """

    children: tuple[int, ...]
    after: int | None = None
    joins: int | None = None
    forks: bool = False
    offsets_ms: tuple[float, ...] = ()
    behind: tuple[int, ...] = ()
    pause: Pause | None = None
    start_ms: float | None = None


class Stream(Struct, frozen=True, omit_defaults=True):
    """One conversation of a tree.

    id: of the results; several may have one, where a conversation is started several times.
    first: the place of its first turn in ``Conversation.turns``.  turns: how many it has; 0 for one that sends nothing and only
    starts others.
    parent: number of the stream that starts it, -1 for the root.  depth: 0 for the root, its parent's + 1 for others.
    before: started before its parent's first turn, so that no request of the parent comes before it.
    scope: streams with the same one keep the order of the record among each other, where lanes replay it: the number of the
    first of them.
    """

    id: str
    first: int
    turns: int
    branches: tuple[Branch, ...] = ()
    parent: int = -1
    depth: int = 0
    before: bool = False
    scope: int = 0

    @property
    def end(self) -> int:
        """The place behind its last turn."""
        return self.first + self.turns


class PlannedTree(Struct, frozen=True):
    """What an entry of a data set plans: its streams, and by place the think time before each turn in ns.

    A conversation that starts no others is one stream.
    """

    streams: tuple[Stream, ...] = ()
    delays_ns: tuple[int, ...] = ()


class TreeOutline(Struct, frozen=True):
    """What drivers know of a conversation before it is made.

    streams: as of the conversation, () where it starts no others.  By turn, counted over all streams: delays_ms, its think
    time, None for none; recorded_ms, as of ``Turn.recorded_ms``.
    """

    id: str
    streams: tuple[Stream, ...]
    delays_ms: Sequence[float | None]
    recorded_ms: Sequence[tuple[float, float] | None]


class TreeBegin(Struct, frozen=True, tag_field="event", tag="tree"):
    """What a driver tells when a tree begins (``DriverContext.tell``), so that the ledger has each of its turns.

    A driver whose trees all begin at their first turns need not tell: what has sent a request has begun.

    phase: under way.  session: number of the root's session.  entry: of the data set.
    ahead: of each stream with turns to send, its number and the place of the first of them; turns before it are history.  None:
    the tree begins at its first turn.  lane: the driver's lane that holds it, -1 without lanes.
    """

    phase: int
    session: int
    entry: int
    ahead: tuple[tuple[int, int], ...] | None = None
    lane: int = -1


class TreeEnd(Struct, frozen=True, tag_field="event", tag="tree_end"):
    """What a driver tells when a tree sends nothing more and has unsent turns.

    fates: of each stream with unsent turns, its number, the place of the first of them, and why: ``truncated``, the phase ended
    before; or another word of the driver, where the stream or the one that starts it had ended.
    """

    phase: int
    session: int
    fates: tuple[tuple[int, int, str], ...]


def told_trees(told: Iterable[Mapping[str, Any]]) -> Iterator[TreeBegin | TreeEnd]:
    """The begins and ends of trees among what drivers *told*; objects of another form are left out."""
    for value in told:
        if value.get("event") in ("tree", "tree_end"):
            with suppress(ValidationError):
                yield convert(value, TreeBegin | TreeEnd)


def fork_of(streams: Sequence[Stream], number: int) -> int | None:
    """The place of the turn whose history, with its answer, the stream *number* begins with; None where it begins anew."""
    stream = streams[number]
    if stream.parent < 0:
        return None
    parent = streams[stream.parent]
    branch = next(branch for branch in parent.branches if number in branch.children)
    return parent.first + (branch.after or 0) if branch.forks and branch.after is not None else None


def said_before(streams: Sequence[Stream], place: int) -> tuple[int, ...]:
    """The places of the turns whose messages and answers come before the turn at *place*, in their order."""
    number = stream_at(streams, place)
    before = tuple(range(streams[number].first, place))
    forked = fork_of(streams, number)
    return before if forked is None else (*said_before(streams, forked), forked, *before)


def stream_at(streams: Sequence[Stream], place: int) -> int:
    """The number of the stream that has the turn at *place*; 0 without streams."""
    return next((number for number, stream in enumerate(streams) if stream.first <= place < stream.end), 0)


def faults(streams: Sequence[Stream], turns: int) -> Iterator[str]:
    """Sentences on what is wrong with the streams of a conversation with so many *turns*; none for a good tree."""
    started: dict[int, int] = {}
    place = 0
    for number, stream in enumerate(streams):
        name = _name(streams, number)
        if stream.first != place or stream.turns < 0:
            yield f"{name} begins at turn {stream.first}, and the streams before it end at {place}"
            return
        place = stream.end
        if not 0 <= stream.scope <= number:
            yield f"the scope of {name} is {stream.scope}; it is the number of a stream from 0 to {number}"
        for at, branch in enumerate(stream.branches):
            yield from (f"branch {at} of {name}: {fault}" for fault in _branch_faults(stream, branch, at))
            for child in branch.children:
                yield from _child_faults(streams, number, child, started)
    if place != turns:
        yield f"its streams have {place} turns, and the conversation has {turns}"
    yield from (f"nothing starts {_name(streams, number)}" for number in range(1, len(streams)) if number not in started)
    if streams and (streams[0].parent, streams[0].depth) != (-1, 0):
        yield "the first stream is the root, with the parent -1 and the depth 0"


def _name(streams: Sequence[Stream], number: int) -> str:
    return f"stream {number} ({streams[number].id!r})"


def _child_faults(streams: Sequence[Stream], parent: int, child: int, started: dict[int, int]) -> Iterator[str]:
    name = _name(streams, parent)
    if not parent < child < len(streams):
        yield f"{name} starts stream {child}; streams behind it are {parent + 1} to {len(streams) - 1}"
        return
    if child in started:
        yield f"{name} starts stream {child}, which stream {started[child]} starts, too"
    elif (streams[child].parent, streams[child].depth) != (parent, streams[parent].depth + 1):
        other = streams[child]
        yield f"stream {child} has the parent {other.parent} and the depth {other.depth}, and {name} starts it"
    started.setdefault(child, parent)


def _branch_faults(stream: Stream, branch: Branch, at: int) -> Iterator[str]:
    last = stream.turns - 1
    after = -1 if branch.after is None else branch.after
    if not branch.children:
        yield "it starts nothing"
    if branch.after is not None and not 0 <= branch.after <= last:
        yield f"it begins after turn {branch.after}, and the stream's last turn is {last}"
    if branch.joins is not None and not after < branch.joins <= last:
        yield f"turn {branch.joins} can't wait for it: later turns are {after + 1} to {last}"
    if branch.forks and branch.after is None:
        yield "nothing is said before the first turn that a fork could go on from"
    if branch.offsets_ms and len(branch.offsets_ms) != len(branch.children):
        yield f"{len(branch.offsets_ms)} offsets for {len(branch.children)} children"
    if any(not offset >= 0 for offset in branch.offsets_ms):  # NaN, too
        yield "an offset is no time from 0 ms on"
    if any(not 0 <= earlier < at for earlier in branch.behind):
        earlier_ones = f"those before it are 0 to {at - 1}" if at else "there are none before it"
        yield f"it waits for branches {branch.behind}; {earlier_ones}"
    if branch.start_ms is not None and not math.isfinite(branch.start_ms):
        yield f"its recorded start is {branch.start_ms} ms"
    pause = branch.pause
    if pause is not None and not (pause.median_ms >= 0 and 0 <= pause.sigma <= 10):
        yield "its pause is no time, or its sigma is not from 0 to 10"


def authored(identity: str, streams: Sequence[Stream], turns: int, told: set[str]) -> Iterator[tuple[str, int, int]]:
    """The conversations of an entry as a data set has written them: id, place of the first turn, and the place behind the last.

    *streams*: of the entry *identity* with so many *turns*; () where it starts no others.  A conversation that is started
    several times comes once: *told*, kept from entry to entry, has the ids of those that came.
    """
    if not streams:
        yield identity, 0, turns
    for stream in streams:
        if stream.turns and stream.id not in told:
            told.add(stream.id)
            yield stream.id, stream.first, stream.end


class TreeBuilder:
    """Puts the streams of a tree together, root first; for data sets.

    Streams are added in any order of their parents; *turns* gives the place of a stream's turns.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._turns: list[int] = []
        self._branches: list[list[Branch]] = []
        self._parents: list[int] = []
        self._scopes: list[int] = []

    def stream(self, identity: str, turns: int, scope: int = 0) -> int:
        """Add a stream with so many turns; its number.  A parent is added before its children."""
        self._ids.append(identity)
        self._scopes.append(scope)
        self._turns.append(turns)
        self._branches.append([])
        self._parents.append(-1)
        return len(self._ids) - 1

    def branch(self, parent: int, branch: Branch) -> int:
        """Let *parent* start the branch, whose children are there; its number in the stream."""
        self._branches[parent].append(branch)
        for child in branch.children:
            self._parents[child] = parent
        return len(self._branches[parent]) - 1

    def streams(self) -> tuple[Stream, ...]:
        """The streams, to be given with the turns of all in the order of their numbers."""
        made: list[Stream] = []
        first = 0
        for number, identity in enumerate(self._ids):
            parent = self._parents[number]
            depth = 0 if parent < 0 else made[parent].depth + 1
            before = parent >= 0 and any(
                number in branch.children and branch.after is None for branch in self._branches[parent]
            )
            branches, scope = tuple(self._branches[number]), self._scopes[number]
            made.append(Stream(identity, first, self._turns[number], branches, parent, depth, before, scope))
            first += self._turns[number]
        return tuple(made)


__all__ = [
    "Branch", "Pause", "PlannedTree", "Stream", "TreeBegin", "TreeBuilder", "TreeEnd", "TreeOutline", "authored", "faults",
    "fork_of", "said_before", "stream_at", "told_trees",
]  # fmt: skip
