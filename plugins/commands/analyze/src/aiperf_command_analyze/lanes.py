"""Lanes: places that sessions take one after the other, as slots of a limit of concurrent sessions; and curves over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import groupby

from msgspec import Struct

from aiperf_command_analyze.sessions import LaneSession, Tree


class Row(Struct, frozen=True):
    """The sessions on one line of the picture; *tier* 0 is the roots'."""

    tier: int
    sessions: list[LaneSession]


class Lane(Struct, frozen=True):
    """Trees one after the other, and the rows on which they are drawn."""

    trees: list[Tree]
    rows: list[Row]


def lanes_of(trees: Sequence[Tree]) -> list[Lane]:
    """Each tree, by start, takes the first lane that is free by then."""
    lanes = [[trees[number] for number in numbers] for numbers in _slots([(tree.start_s, tree.end_s) for tree in trees])]
    return [Lane(lane, _rows(lane)) for lane in lanes]


def _slots(spans: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Numbers of the spans in each slot; *spans* are ascending by start.  The lowest free slot is taken."""
    slots: list[list[int]] = []
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    for number, (start, end) in enumerate(spans):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            slot = heappop(free)
        else:
            slot = len(slots)
            slots.append([])
        slots[slot].append(number)
        heappush(busy, (end, slot))
    return slots


def _rows(trees: Iterable[Tree]) -> list[Row]:
    """Roots on the first row; the other sessions of a tree on as few rows as they need below it."""
    rows: dict[int, list[LaneSession]] = {0: []}
    for tree in trees:
        children = [session for session in tree.sessions if session.depth]
        rows[0] += [session for session in tree.sessions if not session.depth]
        for tier, numbers in enumerate(_slots([(each.start_s, each.end_s) for each in children]), 1):
            rows.setdefault(tier, []).extend(children[number] for number in numbers)
    return [Row(tier, rows[tier]) for tier in sorted(rows)]


class Steps(Struct, frozen=True):
    """A curve that holds each value until the next instant."""

    at_s: list[float]
    values: list[int]


def counted(spans: Iterable[tuple[float, float]]) -> Steps:
    """How many of the spans hold at a time."""
    known = [(start, end) for start, end in spans if end > start]
    changes = sorted([(start, 1) for start, _ in known] + [(end, -1) for _, end in known])
    at_s: list[float] = []
    values: list[int] = []
    now = 0
    for instant, steps in groupby(changes, key=lambda change: change[0]):
        now += sum(step for _, step in steps)
        at_s.append(instant)
        values.append(now)
    return Steps(at_s, values)


def busy_spans(tree: Tree) -> list[tuple[float, float]]:
    """The times in which any request of the tree is in flight, one behind the other."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted((each.start_s, each.end_s) for session in tree.sessions for each in session.requests):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


__all__ = ["Lane", "Row", "Steps", "busy_spans", "counted", "lanes_of"]
