"""How long ago the prompt's beginning was last sent: what a prefix cache must keep it for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from aiperf.sdk.trees import PlannedTree, fork_of

from aiperf_metric_trees.gathering import Request, Tree

_NS_PER_S = 1e9
AGES_S = (1, 10, 60, 300, 3600)
"""Bounds of the ages, in s."""
AGES = ("first", "under_1s", "1s_to_10s", "10s_to_1m", "1m_to_5m", "5m_to_1h", "over_1h")
"""Names of the ages in tags; ``first`` of prompts of which nothing was sent before in the tree."""
SHOWN = ("first sent", "< 1 s", "1 s to 10 s", "10 s to 1 min", "1 to 5 min", "5 min to 1 h", "≥ 1 h")


def ages_of(tree: Tree) -> Iterator[tuple[Request, str]]:
    """Each good request with a first token, and the name of its prefix's age.

    The prefix was last sent by the turn before, or by what forked behind that turn; of a fork's first turn by its parent from
    the forked turn on, or by another fork of the parent from there.  One whose prefix was sent in an earlier phase has no age.
    """
    origins = _origins(tree.plan)
    forks: dict[int, list[tuple[int, int]]] = {}
    for child, (parent, turn) in origins.items():
        forks.setdefault(parent, []).append((turn, child))
    for number, requests in tree.streams.items():
        for request in requests:
            if not request.good or not request.ttft_ns >= 0:
                continue
            source = (number, request.turn - 1) if request.turn else origins.get(number)
            latest = None if source is None else _last_sent(tree, forks, *source, request)
            if latest is not None:
                yield request, _age(request.start_ns - latest)
            elif source is None:
                yield request, AGES[0]


def _origins(plan: PlannedTree) -> dict[int, tuple[int, int]]:
    """The parent of each forked stream, and the turn that it goes on from."""
    found = {}
    for number, stream in enumerate(plan.streams):
        place = fork_of(plan.streams, number)
        if place is not None:
            found[number] = stream.parent, place - plan.streams[stream.parent].first
    return found


def _last_sent(
    tree: Tree, forks: dict[int, list[tuple[int, int]]], stream: int, turn: int, request: Request
) -> float | None:
    """When a prompt that goes on from this turn, or the turn itself, was last sent before the request."""
    own = [each.start_ns for each in tree.streams.get(stream, []) if each.turn >= turn]
    starts = [*_latest(own, request.start_ns)]
    for behind, child in forks.get(stream, []):
        if behind >= turn and child != request.stream:
            starts += _latest([each.start_ns for each in tree.streams.get(child, [])], request.start_ns)
    return max(starts, default=None)


def _latest(starts: list[float], before_ns: float) -> list[float]:
    """The last of ascending starts that is before an instant."""
    place = bisect_left(starts, before_ns)
    return starts[place - 1 : place] if place else []


def _age(age_ns: float) -> str:
    return AGES[1 + sum(age_ns >= bound * _NS_PER_S for bound in AGES_S)]
