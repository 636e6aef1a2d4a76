"""The run's end of claims: numbers of arrivals and sessions that sites draw as answers come, dealt to them in blocks.

A site asks ahead of its need, so that none waits for the way there and back.  Blocks get smaller towards the end of a count;
once all are dealt, a site that has none left gets a part of what others have, so that sites end together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from aiperf.sdk.driver import ARRIVALS, SESSIONS
from aiperf.sdk.plan import PhasePlan
from aiperf.sites.messages import Block, Claim, GiveBack, Given

Answer: TypeAlias = tuple[int, Block | GiveBack]
"""A message, behind the number of the site that it is for."""


_FURTHER = 1 << 40
"""Numbers that a site has for itself, beyond those planned."""


class Pool:
    """The numbers of one counter of a phase, for so many *sites*.

    *limit*: how many there are, None for any number.  *strict*: no request bears a higher one; else each site gets higher ones
    of its own, once nobody has one of these.
    """

    def __init__(self, phase: int, counter: int, sites: int, limit: int | None, *, strict: bool) -> None:
        self._phase, self._counter, self._sites = phase, counter, sites
        self._limit, self._strict = limit, strict
        self._next = 0
        self._returned: list[tuple[int, int]] = []
        self._hungry: list[tuple[int, float]] = []
        self._asked: set[int] = set()
        self._gone: set[int] = set()

    @property
    def dealt(self) -> int:
        """How many of the numbers that there are were dealt: no more requests can have been sent."""
        return self._next if self._limit is None else min(self._next, self._limit)

    def claim(self, site: int, claim: Claim) -> Iterator[Answer]:
        """The site wants numbers."""
        want, least = max(1, claim.want), max(1, claim.least)
        self._gone.discard(site)
        if self._limit is None:
            yield site, self._block(self._next, want)
            self._next += want
        elif (rest := self._limit - self._next) > 0:
            count = min(rest, max(least, min(want, rest // (2 * self._sites))))
            yield site, self._block(self._next, count)
            self._next += count
        elif not claim.empty:
            yield site, self._block(0, 0)
        else:
            self._hungry.append((site, claim.rate))
            if not self._asked:
                yield from self._ask()
            yield from self._shared_out()

    def take(self, site: int, blocks: Iterable[tuple[int, int]]) -> Iterator[Answer]:
        """The site gives these back, each from its first number on so many."""
        self._returned += blocks
        self._asked.discard(site)
        yield from self._shared_out()

    def lose(self, site: int) -> Iterator[Answer]:
        """The site is gone, with what it had."""
        self._gone.add(site)
        self._asked.discard(site)
        self._hungry = [each for each in self._hungry if each[0] != site]
        yield from self._shared_out()

    def _ask(self) -> Iterator[Answer]:
        """Ask those that are not hungry, for the first that is."""
        self._asked = set(range(self._sites)) - self._gone - {site for site, _ in self._hungry}
        rate = self._hungry[0][1]
        yield from ((other, GiveBack(self._phase, self._counter, rate)) for other in sorted(self._asked))

    def _shared_out(self) -> Iterator[Answer]:
        """What came back, to those that have none, once every site that was asked has answered.

        Where more have none than numbers came back, and numbers don't end with the count, those that got none wait: who got one
        may not need it, as a worker waits for a number before it knows whether there is a session for it.
        """
        if self._asked or not self._hungry:
            return
        hungry, self._hungry = self._hungry, []
        returned, self._returned = self._returned, []
        came = bool(returned)
        for place, (site, rate) in enumerate(hungry):
            blocks = _taken(returned, -(-sum(count for _, count in returned) // (len(hungry) - place)))
            for start, count in blocks:
                yield site, self._block(start, count)
            if blocks:
                continue
            if came and not self._strict:
                self._hungry.append((site, rate))
                continue
            yield site, Block(self._phase, self._counter, self._next, 0, over=True)
            self._next += 0 if self._strict else _FURTHER
        if self._hungry:
            yield from self._ask()

    def _block(self, start: int, count: int) -> Block:
        return Block(self._phase, self._counter, start, count)


def _taken(blocks: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Take so many numbers out of *blocks*."""
    taken = []
    while count and blocks:
        start, has = blocks.pop(0)
        take = min(count, has)
        taken.append((start, take))
        count -= take
        if take < has:
            blocks.insert(0, (start + take, has - take))
    return taken


class Pools:
    """All numbers of a run, for so many *sites*."""

    def __init__(self, phases: Sequence[PhasePlan], sites: int) -> None:
        self._pools: dict[tuple[int, int], Pool] = {}
        for phase in phases:
            turns = phase.turns if phase.duration_ns is None else None
            limit = turns if phase.request_count is None else phase.request_count
            strict = phase.request_count is not None
            self._pools[phase.index, ARRIVALS] = Pool(phase.index, ARRIVALS, sites, limit, strict=strict)
            self._pools[phase.index, SESSIONS] = Pool(phase.index, SESSIONS, sites, phase.session_count, strict=True)

    def has(self, message: Claim | Given) -> bool:
        """Whether there are such numbers."""
        return (message.phase, message.counter) in self._pools

    def claim(self, site: int, claim: Claim) -> Iterator[Answer]:
        return self._pools[claim.phase, claim.counter].claim(site, claim)

    def take(self, site: int, given: Given) -> Iterator[Answer]:
        return self._pools[given.phase, given.counter].take(site, given.blocks)

    def arrivals(self, phase: int) -> int:
        """How many arrivals of the phase were dealt."""
        return self._pools[phase, ARRIVALS].dealt

    def lose(self, site: int) -> Iterator[Answer]:
        """The site is gone; one in its place may claim again."""
        for pool in self._pools.values():
            yield from pool.lose(site)
