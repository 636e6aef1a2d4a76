"""The requests of a run in pieces of time: curves have a point per request, and those of a long run would fill the memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from aiperf import RawValues
from aiperf.sdk.columns import Floats

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

STARTS = 100_000
"""Requests that start in a piece."""
_BLOCK = 16_384
"""Requests that are read together."""
Lists: TypeAlias = "tuple[Ints, Floats]"
"""By request the length of its list, and all lists joined."""


class Piece(NamedTuple):
    """A time, in ns since the run's start, and the requests that are under way in it: their columns and lists."""

    begin_ns: float
    end_ns: float
    columns: Mapping[str, Floats]
    lists: Lists | None


class _Block(NamedTuple):
    """Requests behind each other in the store, from the number *first*; *begin_ns*, *end_ns*: the time that they take up."""

    first: int
    begin_ns: float
    end_ns: float


def pieces_of(kept: RawValues, listed: str | None = None) -> Iterator[Piece]:
    """The whole time in pieces, in order and without gaps; the first has no begin, and the last no end.

    A request is under way from ``started_ns`` to ``ended_ns``, without end where that is unknown.  *listed*: a list column, of
    which the pieces have the part of their requests, unless the kernel had no room for it.
    """
    lists = None if listed is None else kept.lists(listed)
    if len(kept) <= STARTS:
        yield Piece(-math.inf, math.inf, kept.rows(0, len(kept)), lists)
        return
    blocks, cuts = _overview(kept)
    for begin_ns, end_ns in zip([-math.inf, *cuts], [*cuts, math.inf], strict=True):
        columns, places = _under_way(kept, blocks, begin_ns, end_ns)
        yield Piece(begin_ns, end_ns, columns, None if lists is None else _taken(lists, places))


def _under_way(kept: RawValues, blocks: list[_Block], begin_ns: float, end_ns: float) -> tuple[dict[str, Floats], Ints]:
    """The columns of the requests that are under way in a time, and their numbers; only they are left in memory."""
    tables, places = [dict(kept.rows(0, 0))], [np.empty(0, dtype=np.int64)]
    for block in blocks:
        if block.begin_ns < end_ns and block.end_ns > begin_ns:
            columns = kept.rows(block.first, block.first + _BLOCK)
            starts, ends = _times(columns)
            under_way = np.flatnonzero((starts < end_ns) & (ends > begin_ns))
            tables.append({name: column[under_way] for name, column in columns.items()})
            places.append(block.first + under_way)
    return {name: np.concatenate([table.pop(name) for table in tables]) for name in [*tables[0]]}, np.concatenate(places)


def _overview(kept: RawValues) -> tuple[list[_Block], list[float]]:
    """All blocks, and the instants between two pieces."""
    blocks, all_starts = [], np.empty(len(kept))
    for first in range(0, len(kept), _BLOCK):
        starts, ends = _times(kept.rows(first, first + _BLOCK))
        all_starts[first : first + len(starts)] = starts
        blocks.append(_Block(first, float(starts.min()), float(ends.max())))
    all_starts.sort()
    return blocks, np.unique(all_starts[STARTS::STARTS]).tolist()


def _times(columns: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Start and end of each request; one that starts and ends at once is under way for the shortest time there is."""
    starts, ends = columns["started_ns"], columns["ended_ns"]
    return starts, np.maximum(np.where(np.isnan(ends), math.inf, ends), np.nextafter(starts, math.inf))


def _taken(lists: Lists, places: Ints) -> Lists:
    """The lists of the requests with these numbers."""
    lengths, elements = lists
    ends = np.cumsum(lengths)
    some = lengths[places]
    offsets = np.repeat(ends[places] - np.cumsum(some), some)
    return some, elements[offsets + np.arange(len(offsets))]
