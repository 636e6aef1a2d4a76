"""Which requests of a recorded agent are one conversation, told by the blocks of their prompts (spec: datasets §3.11).

A recorder that doesn't know of workers writes their requests among those of the agent that started them.  A request goes on
with the chain whose latest prompt is the beginning of its own; any other opens a chain of its own.  Of those, the one that goes
on from a prompt which no later request takes up again is the same agent after its context was cut, and is put back behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct

from aiperf_traces.blocks import WIDTH, common, packed
from aiperf_traces.sessions import RecordedRequest

_SLACK_S = 1e-6
"""Recorded times that differ by less are equal."""


class SeamRules(Struct, frozen=True):
    """When a chain is no continuation: it begins later than *most_gap_s* and shares less than *least_overlap* of the blocks."""

    most_gap_s: float = 3600.0
    least_overlap: float = 0.5


class Fork(Struct):
    """Where a chain has split off.  tail: number of the request; depth: blocks that both share."""

    tail: int
    depth: int


class Chain(Struct):
    """The requests of one agent, by their numbers.  fork: None of the first chain, and where nothing is shared.

    tail: the latest request that has blocks, -1 before there is one.  into: the chain behind which this one was put.
    """

    requests: list[int]
    fork: Fork | None = None
    tail: int = -1
    into: int | None = None


class Chains:
    """The chains among *requests*, which are numbered in the order of their times.

    main: the chain of the first request.  workers: the other chains, in the order of their first requests.
    """

    def __init__(self, requests: Sequence[RecordedRequest], rules: SeamRules) -> None:
        self._requests, self._rules = requests, rules
        self._packed = [packed(request.blocks) for request in requests]
        self._owner = [0] * len(requests)
        self._forks: dict[int, list[int]] = {}
        self.chains: list[Chain] = []
        for number in range(len(requests)):
            self._sort_in(number)
        self._put_back()
        live = [at for at, chain in enumerate(self.chains) if chain.into is None]
        self.main = self.chain_of(0) if requests else 0
        self.workers = sorted((at for at in live if at != self.main), key=lambda at: self.chains[at].requests[0])

    def chain_of(self, number: int) -> int:
        """The chain that has the request, after all were put back."""
        return self._live(self._owner[number])

    def _live(self, at: int) -> int:
        while (into := self.chains[at].into) is not None:
            at = into
        return at

    def _sort_in(self, number: int) -> None:
        """Give the request to a chain, an earlier one or its own."""
        ids, chains = self._packed[number], self.chains
        if not ids or not chains:  # without blocks nothing tells it from the main agent
            if not chains:
                chains.append(Chain([]))
            self._append(0, number)
            return
        at = self._continued(number)
        if at is None:
            parent, depth = self._nearest(ids)
            if parent is None and all(chain.tail < 0 for chain in chains):
                at = 0
            else:
                at = len(chains)
                chains.append(Chain([], None if parent is None else Fork(chains[parent].tail, depth)))
                if parent is not None:
                    self._forks.setdefault(chains[parent].tail, []).append(at)
        self._append(at, number)

    def _append(self, at: int, number: int) -> None:
        chain = self.chains[at]
        chain.requests.append(number)
        self._owner[number] = at
        if self._packed[number]:
            chain.tail = number

    def _continued(self, number: int) -> int | None:
        """The chain that the request goes on with: of those that fit the one with the longest prompt."""
        request, ids = self._requests[number], self._packed[number]
        best, longest = None, 0
        for at, chain in enumerate(self.chains):
            if chain.tail < 0:
                continue
            tail, said = self._requests[chain.tail], self._packed[chain.tail]
            if not longest < len(said) <= len(ids) or tail.model != request.model or tail.end_s > request.at_s + _SLACK_S:
                continue
            if said[-WIDTH:] == ids[len(said) - WIDTH : len(said)] and ids.startswith(said):
                best, longest = at, len(said)
        return best

    def _nearest(self, ids: bytes) -> tuple[int | None, int]:
        """The chain whose latest prompt shares most blocks, of several the one with the longest; and how many."""
        best, key = None, (0, 0)
        for at, chain in enumerate(self.chains):
            said = self._packed[chain.tail] if chain.tail >= 0 else b""
            if said[:WIDTH] == ids[:WIDTH] and (mine := (common(said, ids), len(said))) > key:
                best, key = at, mine
        return best, key[0]

    def _put_back(self) -> None:
        """Put continuations behind the chains that they go on with, in the order of the prompts that they go on from."""
        waiting, seen = sorted(self._forks), set[int]()
        heapify(waiting)
        while waiting:
            tail = heappop(waiting)
            if tail in seen:
                continue
            seen.add(tail)
            owner = self.chain_of(tail)
            chain = self.chains[owner]
            if chain.tail != tail:  # the longer prompt was taken up again
                continue
            forked = [at for at in self._forks[tail] if self.chains[at].into is None]
            elected = self._elected(tail, forked)
            if elected is None:
                continue
            taken = self.chains[elected]
            chain.requests += taken.requests
            chain.tail, taken.into = taken.tail, owner
            forked.remove(elected)
            if self._moved(forked, chain.tail):
                seen.discard(chain.tail)
                heappush(waiting, chain.tail)

    def _elected(self, tail: int, forked: Sequence[int]) -> int | None:
        """The continuation among chains that have split off from *tail*: the deepest, then the earliest."""
        before, blocks = self._requests[tail], len(self._packed[tail]) // WIDTH
        best, key = None, (0, 0.0)
        for at in forked:
            chain = self.chains[at]
            first, depth = self._requests[chain.requests[0]], chain.fork.depth if chain.fork else 0
            late = first.at_s - before.end_s > self._rules.most_gap_s and depth / blocks < self._rules.least_overlap
            if depth <= 0 or before.end_s > first.at_s + _SLACK_S or first.model != before.model or late:
                continue
            if best is None or (depth, -first.at_s) > key:
                best, key = at, (depth, -first.at_s)
        return best

    def _moved(self, forked: Sequence[int], tail: int) -> bool:
        """Let chains that are left have split off from the new *tail*, where they share blocks with it; whether any does."""
        moved = False
        for at in forked:
            chain = self.chains[at]
            depth = common(self._packed[tail], self._packed[chain.requests[0]])
            if depth > 0:
                chain.fork = Fork(tail, depth)
                self._forks.setdefault(tail, []).append(at)
                moved = True
        return moved


__all__ = ["Chain", "Chains", "Fork", "SeamRules"]
