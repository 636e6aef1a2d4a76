"""The results of each window of time, from one tree after the other."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from aiperf import Result

from aiperf_metric_trees.branches import NAMES, branch_stats
from aiperf_metric_trees.ending import Ending, Outcome
from aiperf_metric_trees.gathering import Tree
from aiperf_metric_trees.prefixes import ages_of
from aiperf_metric_trees.shown import DISTRIBUTIONS, counts, distribution, rate
from aiperf_metric_trees.waiting import Waits, most_at_once

_HOUR_NS = 3600e9


class _Value(NamedTuple):
    """A value of a result, and when it was known, in ns since the run's start."""

    tag: str
    at_ns: float
    number: float


class Windows:
    """*windows*: begin and end of each, in ns since the run's start; an end that is no other's begin belongs to its window."""

    def __init__(self, windows: Sequence[tuple[float, float]], percentiles: Sequence[float]) -> None:
        self._windows, self._percentiles = windows, percentiles
        self._values = {tag: (array("d"), array("d")) for tag in DISTRIBUTIONS}
        self._outcomes: list[Counter[str]] = [Counter() for _ in windows]
        self._branches: list[Counter[str]] = [Counter() for _ in windows]
        begins = {begin for begin, _ in windows}
        self._closed = [end not in begins for _, end in windows]

    def take(self, tree: Tree) -> None:
        """Add a tree; one whose plan isn't known is left out."""
        if len(tree.plan.streams) <= max(tree.streams):
            return
        waits, ending = Waits(tree), Ending(tree)
        latest_ns = max(each.end_ns if each.over else each.start_ns for each in waits.requests)
        for values in (_whole(tree, waits, latest_ns) if ending.outcome is Outcome.ENDED else (), _parts(tree, waits)):
            for value in values:
                instants, numbers = self._values[value.tag]
                instants.append(value.at_ns)
                numbers.append(value.number)
        found = branch_stats(tree, waits, ending)
        for place in self._places(latest_ns):
            self._outcomes[place][ending.outcome.value] += 1
            self._branches[place] += found

    def _places(self, at_ns: float) -> Iterator[int]:
        for place, ((begin, end), closed) in enumerate(zip(self._windows, self._closed, strict=True)):
            if begin <= at_ns < end or (closed and at_ns == end):
                yield place

    def results(self) -> list[list[Result]]:
        """The results of each window; none of one without trees."""
        return [[*self._of(place)] for place in range(len(self._windows))]

    def _of(self, place: int) -> Iterator[Result]:
        begin, end = self._windows[place]
        for tag, (instants, numbers) in self._values.items():
            at, values = np.array(instants), np.array(numbers)
            wanted = (at >= begin) & ((at <= end) if self._closed[place] else (at < end))
            if wanted.any():
                yield distribution(tag, values[wanted], self._percentiles)
        outcomes = self._outcomes[place]
        if not outcomes:
            return
        yield counts("tree_outcomes", "Trees", {each.value: outcomes[each] for each in Outcome if outcomes[each]}, shown=True)
        if end > begin:
            yield rate((outcomes[Outcome.ENDED] + outcomes[Outcome.RESUMED]) / (end - begin) * _HOUR_NS)
        yield counts("branch_stats", "Branches", {name: self._branches[place][name] for name in NAMES}, shown=False)


def _whole(tree: Tree, waits: Waits, end_ns: float) -> Iterator[_Value]:
    """Values of a tree that began and ended in the phase."""
    requests = waits.requests
    duration_ns = end_ns - requests[0].start_ns
    service_ns, planned_ns = waits.paths_ns()
    numbers = {
        "tree_duration": duration_ns,
        "tree_critical_path": service_ns,
        "tree_requests": len(requests),
        "tree_tokens": sum(each.tokens for each in requests),
        "tree_depth": max(tree.plan.streams[number].depth for number in tree.streams),
        "tree_width": most_at_once(requests),
    }
    if duration_ns > 0:
        numbers["tree_critical_path_share"] = 100 * planned_ns / duration_ns
    counted = [each for each in requests if each.prompt > 0 and each.cached >= 0]
    planned = [each for each in requests if each.blocks > 0]
    if counted:
        observed = 100 * sum(each.cached for each in counted) / sum(each.prompt for each in counted)
        numbers["tree_prefix_hit_observed"] = observed
    if planned:
        theoretical = 100 * sum(each.hits for each in planned) / sum(each.blocks for each in planned)
        numbers["tree_prefix_hit_theoretical"] = theoretical
        if counted:
            numbers["tree_prefix_hit_lost"] = theoretical - observed
    yield from (_Value(tag, end_ns, float(number)) for tag, number in numbers.items())


def _parts(tree: Tree, waits: Waits) -> Iterator[_Value]:
    """Values of parts of a tree, whether it ended or not."""
    yield from (_Value("tree_join_wait", at_ns, wait_ns) for at_ns, wait_ns in waits.join_waits())
    yield from (_Value("tree_sibling_spread", at_ns, ratio) for at_ns, ratio in waits.sibling_spreads())
    for request, age in ages_of(tree):
        yield _Value(f"tree_ttft_prefix_{age}", request.end_ns, request.ttft_ns)
