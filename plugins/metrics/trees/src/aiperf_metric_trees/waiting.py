"""What the requests of a tree waited for: the turn before, what started their stream, and the children that they join."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from aiperf.sdk.trees import Branch, PlannedTree

from aiperf_metric_trees.gathering import Request, Tree

_MS = 1e6
_CLOCKS_NS = 1e6
"""The end of an answer is a stamp of another clock than the start of the next request: they may be so far apart."""


class Need(NamedTuple):
    """A request that another one waited for, and the planned time between the two, in ns: inf where it was drawn."""

    request: Request
    planned_ns: float


class Waits:
    """The dependencies among the requests of a tree that were sent."""

    def __init__(self, tree: Tree) -> None:
        self.plan: PlannedTree = tree.plan
        self.requests = tree.requests
        self._streams = tree.streams
        self._at = {(each.stream, each.turn): each for each in self.requests}
        self._started_by = {
            child: (number, branch)
            for number, stream in enumerate(self.plan.streams)
            for branch in stream.branches
            for child in branch.children
        }

    def at(self, stream: int, turn: int) -> Request | None:
        return self._at.get((stream, turn))

    def before(self, request: Request) -> Request | None:
        """The turn before it in its stream."""
        return self.at(request.stream, request.turn - 1)

    def delay_ns(self, request: Request) -> float:
        """The think time before it."""
        place = self.plan.streams[request.stream].first + request.turn
        return self.plan.delays_ns[place] if place < len(self.plan.delays_ns) else 0

    def ends_of_join(self, stream: int, turn: int) -> list[Request]:
        """The ends of the children that a turn waits for, of those that were sent."""
        joined = (branch for branch in self.plan.streams[stream].branches if branch.joins == turn)
        return [end for branch in joined for child in branch.children for end in self.ends(child)]

    def delayed(self, number: int) -> bool:
        """Whether the stream was planned to start later than what starts it."""
        _, branch = self._started_by[number]
        return branch.pause is not None or _offset_ns(branch, number) > 0

    def needs(self, request: Request) -> Iterator[Need]:
        """What it waited for, of what was sent."""
        delay_ns = self.delay_ns(request)
        if request.turn:
            if (before := self.before(request)) is not None:
                yield Need(before, delay_ns)
            yield from (Need(end, 0) for end in self.ends_of_join(request.stream, request.turn))
        else:
            starts = self._starts(request.stream, request.start_ns)
            yield from (Need(start, planned_ns + delay_ns) for start, planned_ns in starts)

    def _starts(self, number: int, start_ns: float = math.inf) -> Iterator[Need]:
        """What a stream waited for before its first turn, which started at *start_ns*.

        A stream that began beside the turn that starts it waited for what that turn waited for.
        """
        if number not in self._started_by:
            return
        parent, branch = self._started_by[number]
        wait_ns = _offset_ns(branch, number)
        pause_ns = 0.0 if branch.pause is None else math.inf if branch.pause.sigma else branch.pause.median_ms * _MS
        if branch.after is None:
            starts = self._starts(parent, start_ns)
            yield from (Need(start, planned_ns + pause_ns + wait_ns) for start, planned_ns in starts)
        elif (request := self.at(parent, branch.after)) is not None:
            beside = branch.start_ms is not None and start_ns < request.end_ns - _CLOCKS_NS
            before = self.needs(request) if beside else [Need(request, 0)]
            yield from (Need(need, planned_ns + pause_ns + wait_ns) for need, planned_ns in before)
        for earlier in branch.behind:
            for child in self.plan.streams[parent].branches[earlier].children:
                yield from (Need(end, pause_ns + wait_ns) for end in self.ends(child))

    def ends(self, number: int) -> Iterator[Request]:
        """The requests whose ends were the end of a stream: its last one; of one that sends nothing, what started it."""
        if not self.plan.streams[number].turns:
            yield from (start for start, _ in self._starts(number))
            return
        yield from self._streams.get(number, [])[-1:]

    def paths_ns(self) -> tuple[float, float]:
        """The longest chain of requests that waited for each other: service time alone, and with the planned times between."""
        service: dict[tuple[int, int], float] = {}
        planned: dict[tuple[int, int], float] = {}
        for request in self.requests:
            alone = whole = 0.0
            for need, planned_ns in self.needs(request):
                key = need.stream, need.turn
                if key in service:
                    alone = max(alone, service[key])
                    gap_ns = max(0.0, request.start_ns - need.end_ns)
                    whole = max(whole, planned[key] + min(planned_ns, gap_ns))
            time_ns = request.end_ns - request.start_ns
            service[request.stream, request.turn] = alone + time_ns
            planned[request.stream, request.turn] = whole + time_ns
        return max(service.values()), max(planned.values())

    def join_waits(self) -> Iterator[tuple[float, float]]:
        """Start of each turn that waited for children, and how long they held it beyond its think time, in ns."""
        for request in self.requests:
            before, ends = self.before(request), self.ends_of_join(request.stream, request.turn)
            if before is not None and ends and all(end.over for end in ends):
                last_ns = max(end.end_ns for end in ends)
                yield request.start_ns, max(0.0, last_ns - before.end_ns - self.delay_ns(request))

    def sibling_spreads(self) -> Iterator[tuple[float, float]]:
        """When the last of the children behind one turn ended, if all have, and the slowest one's time over the median."""
        for stream in self.plan.streams:
            siblings: dict[tuple[int | None, tuple[int, ...]], list[int]] = {}
            for branch in stream.branches:
                siblings.setdefault((branch.after, branch.behind), []).extend(branch.children)
            for children in siblings.values():
                times = [self._time(child) for child in children]
                known = [each for each in times if each is not None]
                if len(known) == len(times) > 1 and (middle := median(end - start for start, end in known)):
                    yield max(end for _, end in known), max(end - start for start, end in known) / middle

    def _time(self, number: int) -> tuple[float, float] | None:
        """First start and end of a stream whose last turn was answered; None of any other."""
        first = self.at(number, 0)
        last = self.at(number, self.plan.streams[number].turns - 1)
        return None if first is None or last is None or not last.over else (first.start_ns, last.end_ns)


def _offset_ns(branch: Branch, child: int) -> float:
    return branch.offsets_ms[branch.children.index(child)] * _MS if branch.offsets_ms else 0.0


def most_at_once(requests: list[Request]) -> int:
    """The most requests in flight at one instant."""
    steps = sorted([(each.start_ns, 1) for each in requests] + [(each.end_ns, -1) for each in requests])
    most = now = 0
    for _, step in steps:  # of one instant the ends come first
        now += step
        most = max(most, now)
    return most
