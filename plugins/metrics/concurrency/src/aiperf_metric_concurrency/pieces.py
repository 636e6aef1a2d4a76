"""The requests of a run in pieces of time: curves have a point per request, and those of a long run would fill the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
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
_LEAST = 64
"""Of a reducer's requests, the fewest of which the time is known together."""
_SAMPLED = 1_000_000
"""Starts between which the pieces are cut; of more, a part decides."""
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
"""An odd factor that mixes the bits of starts: the part doesn't depend on their order."""
Lists: TypeAlias = "tuple[Ints, Floats]"
"""By request the length of its list, and all lists joined."""


class Piece(NamedTuple):
    """A time, in ns since the run's start, and the requests that are under way in it: their columns and lists."""

    begin_ns: float
    end_ns: float
    columns: Mapping[str, Floats]
    lists: Lists | None


class _Blocks(NamedTuple):
    """Requests behind each other in the store, *size* in each block; *begin_ns*, *end_ns*: the time that each takes up."""

    size: int
    begin_ns: Floats
    end_ns: Floats

    def under_way(self, begin_ns: float, end_ns: float) -> Iterator[tuple[int, int]]:
        """Numbers of the first request and behind the last one, of neighbouring blocks together that are under way then."""
        found = np.flatnonzero((self.begin_ns < end_ns) & (self.end_ns > begin_ns))
        most = max(1, _BLOCK // self.size)
        for run in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1) if len(found) else ():
            for at in range(0, len(run), most):
                part = run[at : at + most]
                yield int(part[0]) * self.size, (int(part[-1]) + 1) * self.size


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


def any_request(kept: RawValues, test: Callable[[Mapping[str, Floats]], bool]) -> bool:
    """Whether *test* holds of the columns of some requests, which are read a block at a time."""
    return any(test(kept.rows(first, first + _BLOCK)) for first in range(0, len(kept), _BLOCK))


def _under_way(kept: RawValues, blocks: _Blocks, begin_ns: float, end_ns: float) -> tuple[dict[str, Floats], Ints]:
    """The columns of the requests that are under way in a time, and their numbers; only they are left in memory."""
    tables, places = [dict(kept.rows(0, 0))], [np.empty(0, dtype=np.int64)]
    for first, end in blocks.under_way(begin_ns, end_ns):
        columns = kept.rows(first, end)
        starts, ends = _times(columns)
        under_way = np.flatnonzero((starts < end_ns) & (ends > begin_ns))
        tables.append({name: column[under_way] for name, column in columns.items()})
        places.append(first + under_way)
    return {name: np.concatenate([table.pop(name) for table in tables]) for name in [*tables[0]]}, np.concatenate(places)


def _overview(kept: RawValues) -> tuple[_Blocks, list[float]]:
    """All blocks, and the instants between two pieces.

    Blocks are the smaller the more reducers there are: the requests of each take up the whole time.
    """
    size = max(_LEAST, min(_BLOCK, STARTS // kept.reducers))
    step, part = max(1, _BLOCK // size) * size, -(-len(kept) // _SAMPLED)
    begins, ends, chosen = [], [], []
    for first in range(0, len(kept), step):
        started, ended = _times(kept.rows(first, first + step))
        edges = np.arange(0, len(started), size)
        begins.append(np.minimum.reduceat(started, edges))
        ends.append(np.maximum.reduceat(ended, edges))
        mixed = (started + 0.0).view(np.uint64) * _MIX >> np.uint64(32)
        chosen.append(started[mixed % np.uint64(part) == 0])
    starts = np.sort(np.concatenate(chosen))
    between = max(1, STARTS // part)
    return _Blocks(size, np.concatenate(begins), np.concatenate(ends)), np.unique(starts[between::between]).tolist()


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
