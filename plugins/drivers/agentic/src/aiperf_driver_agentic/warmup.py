"""The warmup of lanes: a request of each stream before its cut, then perhaps more without idle time.

Spec: agentic §6.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf_driver_agentic.lanes import FirstTree, Lane
from aiperf_driver_agentic.options import AgenticOptions
from aiperf_driver_agentic.tree import Fate, LaneTree, Node

if TYPE_CHECKING:
    from aiperf_driver_agentic.driver import AgenticDriver

log = logging.getLogger("aiperf.drivers.agentic")

_NS_PER_S = 1_000_000_000
_LOOK_NS = 2_000_000
"""From one look at the other workers' primers to the next."""
_LONGEST_GRACE_S = 300.0
"""Of a further stage by time, where no option gives the grace."""
_NOTHING_TO_CUT = (
    "no lane begins: of every trace nothing is left behind its cut. Give traces of several requests, or a lower"
    " --trajectory-start-max-ratio"
)
_TOLD_LANES = 16
"""Lanes that the log tells of one by one."""


class Warmup:
    """The stages of a driver's warmup.

    priming: the requests before the cuts are under way.
    """

    def __init__(self, driver: AgenticDriver, options: AgenticOptions) -> None:
        self._driver, self._options = driver, options
        self.priming = True
        self._unsent = self._unanswered = 0
        self._goes_on = options.requests_per_lane is not None or options.cache_warmup_s is not None

    def begin(self, start_ns: int) -> None:
        """Cut the lanes' first trees, and send their primers: spread as they were recorded, or all at once."""
        driver, context = self._driver, self._driver.context
        firsts = driver.grove.cursor.first_trees(self._options, context.seed)
        longest_ns = max((self._lead_ns(first, place) for first in firsts for place in first.cut.primers.values()), default=0)
        if context.shard == 0:  # all workers know the same
            _log_lanes(firsts)
            if not firsts:
                driver.give_up(_NOTHING_TO_CUT)
                return
        known = {first.lane: first for first in firsts}
        driver.grove.lanes[:] = [lane for lane in driver.grove.lanes if lane.number in known]
        primers: list[tuple[Node, int]] = []
        for lane in driver.grove.lanes:
            first = known[lane.number]
            for node in self._opened(lane, first):
                if node.number in first.cut.primers:
                    lead_ns = longest_ns if self._options.burst else self._lead_ns(first, node.place)
                    primers.append((node, start_ns + longest_ns - lead_ns))
        self._unsent = self._unanswered = len(primers)
        driver.caps.begin(driver.phase.index, start_ns)
        for node, due_ns in sorted(primers, key=lambda row: row[1]):
            driver.schedule(node, due_ns)
        driver.caps.look()
        if not primers:
            driver.board.primed(start_ns)
            self._await_others()

    def _opened(self, lane: Lane, first: FirstTree) -> Iterator[Node]:
        """The streams of a lane's first tree that go on, each at its primer, or at its first turn where it has none."""
        driver = self._driver
        root = driver.grove.root_session(lane, first.root)
        tree = LaneTree(first.recording, root, first.cut)
        for stream, place in first.cut.going.items():
            session = driver.requests.child(root, stream) if stream else root
            session.turn = first.cut.primers.get(stream, place)
            yield tree.add(stream, session, session.turn)
        driver.grove.open(lane, first.root, first.recording, tree)

    def _lead_ns(self, first: FirstTree, place: int) -> int:
        lead_ns, cap_s = first.cut.lead_ns(first.recording, place), self._options.system_gap_cap_s
        return lead_ns if cap_s is None else min(lead_ns, round(cap_s * _NS_PER_S))

    def sent(self, lane: Lane) -> None:
        """A request of the lane has left."""
        if self.priming:
            self._unsent -= 1
            if not self._unsent:
                self._driver.drain_within(self._grace_s)
            return
        lane.sent += 1
        self._finish_if_done()

    def holds(self, node: Node) -> bool:
        """Whether the node's lane has sent what the further stage asks for."""
        if self.priming or self._options.requests_per_lane is None:
            return False
        lane, _ = self._driver.grove.of(node.session)
        return lane.sent >= self._options.requests_per_lane

    def goes_on(self, lane: Lane) -> bool:
        """Whether an empty lane takes another tree."""
        most = self._options.requests_per_lane
        return not self.priming and self._goes_on and (most is None or lane.sent < most)

    def ended(self, lane: Lane, node: Node) -> None:
        """A request is over."""
        driver, session, at_ns = self._driver, node.session, node.session.answered_ns
        tree, primes = node.tree, self.priming
        if session.failed and not node.number and not driver.stopped:
            what = "was longer than the model's context" if session.overflowed else "failed"
            of = f"turn {node.place - node.stream.first} of trace {tree.recording.name}"
            driver.give_up(f"the warmup of lane {lane.number} failed: the request of {of} {what}")
            return
        if primes:
            self._unanswered -= 1
        if session.overflowed or (session.failed and not primes):
            driver.grove.cut_off(node, Fate.OVERFLOWED if session.overflowed else Fate.FAILED, at_ns)
        elif primes:
            node.place += 1
            session.turn = node.place
            tree.prepare(node)
        else:
            driver.grove.step(node, at_ns)
        if not primes:
            driver.grove.settle(lane, tree, at_ns)
        elif not self._unanswered:
            driver.drained()
            driver.board.primed(at_ns)
            self._await_others()

    def _await_others(self) -> None:
        """Go on once the primers of all workers were answered."""
        driver = self._driver
        primed_ns = driver.board.all_primed_ns
        if driver.complete or not self.priming:
            return
        if primed_ns is None:
            driver.alarms.at(monotonic_ns() + _LOOK_NS, self._await_others)
            return
        self.priming = False
        if not self._goes_on:
            driver.finish()
            return
        if self._options.cache_warmup_s is not None:
            driver.alarms.at(primed_ns + round(self._options.cache_warmup_s * _NS_PER_S), driver.finish)
        for lane in list(driver.grove.lanes):
            if lane.tree is None:
                continue
            for node in list(lane.tree.going()):
                if not node.flying:
                    driver.schedule(node, primed_ns)
            driver.grove.settle(lane, lane.tree, primed_ns)
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if not self.priming and all(map(self._is_full, self._driver.grove.lanes)):
            self._driver.finish()

    def _is_full(self, lane: Lane) -> bool:
        """Whether the lane has sent its share of the further stage, or has nothing more to send."""
        most = self._options.requests_per_lane
        return (most is not None and lane.sent >= most) or lane.tree is None

    def rest(self, flying: int) -> None:
        """All of the warmup has left; behind its last answer the lanes stand where profiling goes on."""
        driver = self._driver
        if flying:
            driver.drain_within(self._grace_s)
            return
        driver.drained()
        offsets = [0 if lane.tree is None else _least_ns(lane.tree) for lane in driver.grove.lanes]
        driver.board.offer_ns(max(0, min(offsets, default=0)))

    @property
    def _grace_s(self) -> float | None:
        if self._options.warmup_grace_s is not None:
            return self._options.warmup_grace_s
        if self._driver.phase.grace_ns is not None:
            return self._driver.phase.grace_ns / _NS_PER_S
        following, cache_s = self._driver.context.following, self._options.cache_warmup_s
        if cache_s is None or following is None or following.grace_ns is None:
            return None
        return max(following.grace_ns / _NS_PER_S, min(cache_s, _LONGEST_GRACE_S))


def _least_ns(tree: LaneTree) -> int:
    return min((tree.offset_ns(node) for node in tree.going()), default=0)


def _log_lanes(firsts: list[FirstTree]) -> None:
    """Tell of the lanes: their traces, where these are cut, and how many streams go on."""
    for first in firsts[:_TOLD_LANES]:
        live = len(first.cut.going)
        log.info(
            "lane %d: trace %s, cut at %.1f %%, %d live %s",
            first.lane, first.recording.name, 100 * first.cut.share, live, "stream" if live == 1 else "streams",
        )  # fmt: skip
    if len(firsts) > _TOLD_LANES:
        log.info("%d other lanes begin likewise", len(firsts) - _TOLD_LANES)
