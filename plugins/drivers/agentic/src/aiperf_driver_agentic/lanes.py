"""Lanes and the roots that they take: the first ones cut, all from one cursor over both phases.

Spec: agentic §5, §9.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from aiperf.sdk.driver import Counter, RequestStarter
from aiperf.sdk.plan import PhasePlan

from aiperf_driver_agentic.cuts import Cut, cut
from aiperf_driver_agentic.draws import cut_point
from aiperf_driver_agentic.options import AgenticOptions
from aiperf_driver_agentic.recording import Recording
from aiperf_driver_agentic.tree import LaneTree

log = logging.getLogger("aiperf.drivers.agentic")


class Lane:
    """A place for one tree at a time.  number: from 0.  tree: None before the first and behind the last.  sent: requests of
    the further stage."""

    __slots__ = ("number", "sent", "tree")

    def __init__(self, number: int) -> None:
        self.number = number
        self.tree: LaneTree | None = None
        self.sent = 0


class Root(NamedTuple):
    """A root that was drawn: its number, its entry, how often that was begun before, and among how many begun trees it is."""

    number: int
    entry: int
    lap: int
    ordinal: int


class FirstTree(NamedTuple):
    """The tree with which a lane begins."""

    lane: int
    root: Root
    recording: Recording
    cut: Cut


class Cursor:
    """The sampler's roots, in the order of their numbers; a function of the plan alone.

    *counter*: numbers that all workers draw from, behind those of the lanes' first trees.
    """

    def __init__(self, requests: RequestStarter, phase: PhasePlan, counter: Counter) -> None:
        self._requests, self._phase, self._counter = requests, phase, counter
        self._skipped: set[int] = set()
        self._laps: dict[int, int] = {}
        self._seen = self._begun = self._first = 0

    def first_trees(self, options: AgenticOptions, seed: int) -> list[FirstTree]:
        """The first tree of each lane.  A trace that can't be cut is skipped; lanes for which none is left are missing."""
        lanes, found, number = self._phase.concurrency or 1, list[FirstTree](), 0
        recordings: dict[int, Recording] = {}
        skipped: list[str] = []
        while len(found) < lanes and number < lanes + 2 * self._phase.entries:
            entry, lane = self._requests.entry(self._phase, number), len(found)
            recording = recordings.get(entry) or recordings.setdefault(entry, Recording(self._requests, entry))
            drawn = cut_point(seed, recording.name, lane)
            place = cut(recording, options.start_min_ratio, options.start_max_ratio, drawn)
            if place is None:
                self._skipped.add(number)
                skipped.append(recording.name)
            else:
                found.append(FirstTree(lane, self._root(number, entry), recording, place))
            number += 1
        self._first = number
        if skipped:
            log.warning("nothing of these traces is left behind their cut, and their lanes take others: %s", _listed(skipped))
        if len(found) < lanes:
            log.warning("%d of %d lanes begin: no other trace can be cut", len(found), lanes)
        return found

    @property
    def ready(self) -> bool:
        """Whether the next root may be drawn now: at a site its number may not have come yet."""
        return self._counter.ready()

    def next(self) -> Root:
        """The next root."""
        number = self._first + self._counter.next()
        return self._root(number, self._requests.entry(self._phase, number))

    def _root(self, number: int, entry: int) -> Root:
        while self._seen <= number:
            if self._seen not in self._skipped:
                seen = self._requests.entry(self._phase, self._seen)
                self._laps[seen] = self._laps.get(seen, 0) + 1
                self._begun += 1
            self._seen += 1
        return Root(number, entry, self._laps[entry] - 1, self._begun - 1)


def _listed(names: list[str]) -> str:
    several = list(dict.fromkeys(names))
    rest = len(several) - 10
    return ", ".join(several[:10]) + (f" and {rest} more" if rest > 0 else "")
