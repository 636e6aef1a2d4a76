"""Instants of content and the gaps between them, for a batch; gaps around merged reads are intervals whose sum is known.

Pieces of a merged read before its last event are marked: they came between the instant at which the socket was last seen empty
and the stamp of the read, in their order.  A *span* is a run of gaps between two known instants, or up to the first or the
last content of an answer where that is marked.  The sum of the gaps of a span is known if both ends are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf.sdk.columns import Column, Floats, Ints, Ragged

from aiperf_reducer_columns.reduce.answer import ITEM, MARKED, SHARED, TEXT, TOOL


def instants(stamps: Ints, kinds: Any, lengths: Ints, since: Ints) -> dict[str, Column]:
    """The columns of LIST_COLUMNS, and those of BOUND_COLUMNS where pieces are marked.

    *stamps*, *kinds*: of each piece of content; *lengths*: pieces of each request; *since*: of each marked piece, when the
    socket was last seen empty before it.
    """
    count = len(lengths)
    owners = np.repeat(np.arange(count), lengths)
    is_new = np.ones(len(stamps), dtype=bool)
    is_new[1:] = (owners[1:] != owners[:-1]) | (stamps[1:] != stamps[:-1])
    starts = np.flatnonzero(is_new)
    at, owned = stamps[starts].astype(np.float64), owners[starts]
    chunks = Ragged(at, _offsets(owned, count), at)
    pieces = np.diff(starts, append=len(stamps)).astype(np.float64)
    columns: dict[str, Column] = {"chunk_ns": chunks, "piece_count": Ragged(pieces, chunks.offsets, at)}
    if len(since):
        return columns | _intervals(stamps, kinds, owners, since, count)
    ends = np.flatnonzero(owned[1:] == owned[:-1]) + 1
    return columns | {"gap_ns": Ragged(at[ends] - at[ends - 1], _offsets(owned[ends], count), at[ends])}


def interval_widths(stamps: Ints, kinds: Any, lengths: Ints, since: Ints) -> Floats:
    """Widths (ns) of the intervals in which marked pieces came.

    Those of the read of the first content are left out: the time before it is no time between two tokens.
    """
    if not len(since):
        return np.empty(0)
    filled = lengths[lengths > 0]
    first = np.repeat(stamps[np.cumsum(filled) - filled], filled)
    marked = (kinds & MARKED) > 0
    widths: Floats = (stamps[marked] - since)[stamps[marked] != first[marked]].astype(np.float64)
    return widths


def first_widths(stamps: Ints, kinds: Any, lengths: Ints, since: Ints) -> Floats:
    """Widths (ns) of the intervals in which the first content of each request came, where that is marked."""
    if not len(since):
        return np.empty(0)
    marked = (kinds & MARKED) > 0
    filled = lengths[lengths > 0]
    begins = np.cumsum(filled) - filled
    begins = begins[marked[begins]]
    widths: Floats = (stamps[begins] - since[np.cumsum(marked)[begins] - 1]).astype(np.float64)
    return widths


def _intervals(stamps: Ints, kinds: Any, owners: Ints, since: Ints, count: int) -> dict[str, Column]:
    """The gaps, each with bounds."""
    marked = (kinds & MARKED) > 0
    earliest = stamps.copy()
    earliest[marked] = np.minimum(since, stamps[marked])
    is_new = np.ones(len(stamps), dtype=bool)
    is_new[1:] = (owners[1:] != owners[:-1]) | (stamps[1:] != stamps[:-1]) | marked[1:] | marked[:-1]
    is_new &= (kinds & SHARED) == 0
    at, earliest = stamps[is_new].astype(np.float64), earliest[is_new].astype(np.float64)
    all_owners = owners
    known, owners = ~marked[is_new], owners[is_new]
    later = np.zeros(len(at), dtype=bool)  # there is a gap before the instant
    later[1:] = owners[1:] == owners[:-1]
    gaps = np.flatnonzero(later)
    begins = known[gaps - 1] | ~later[gaps - 1]  # the gap is the first of its span
    first = np.flatnonzero(begins)
    spans, sizes = np.cumsum(begins) - 1, np.diff(first, append=len(gaps))
    left, right = gaps[first] - 1, gaps[first] + sizes - 1
    closed = known[left] & known[right]
    begin = np.where(known[left], at[left], earliest[left])
    whole = np.maximum(at[right] - begin, 0)
    # The first gap is at least as long as the time in which the socket was still seen empty.
    least = np.where(known[left], np.clip(earliest[left + 1] - begin, 0, whole), 0)
    rest = whole - least
    mean = rest / np.where(closed, sizes, 2 * sizes)
    place = np.arange(len(gaps)) - first[spans]
    # At most k + 1 gaps of a span can be as long as its kth value here, for which the rest is divided among them evenly.
    high = np.minimum((whole[spans]) / (place + 1), np.divide(rest[spans], place, out=whole[spans], where=place > 0))
    low = np.where(closed, np.maximum(least, whole / sizes), least)[spans]
    offsets, ends = _offsets(owners[gaps], count), at[gaps]
    values = {
        "gap_ns": np.where(begins, least[spans], 0) + mean[spans], "gap_low_ns": np.where(begins, low, 0), "gap_high_ns": high,
        "gap_slack_ns": np.where(closed, 0, mean)[spans],
    }  # fmt: skip
    columns: dict[str, Column] = {name: Ragged(column, offsets, ends) for name, column in values.items()}
    columns |= _first(_Places(stamps, kinds, all_owners, since, count))
    opening = np.flatnonzero(~later[gaps - 1])  # the first gap of each request
    for name, bound in (("second_low_ns", least), ("second_high_ns", whole)):
        column = np.full(count, np.nan)
        column[owners[gaps[opening]]] = bound[spans[opening]]
        columns[name] = column
    return columns


class _Places:
    """The pieces of a batch with merged reads.

    earliest: at which each may have come.  shown: whether it may have an instant of its own.  begins, ends: of each request
    with pieces, its first piece and the place behind its last one; requests: these requests.
    """

    def __init__(self, stamps: Ints, kinds: Any, owners: Ints, since: Ints, count: int) -> None:
        self.stamps, self.count = stamps, count
        marked = (kinds & MARKED) > 0
        self.shown = (kinds & SHARED) == 0
        self.output = (kinds & (TEXT | TOOL | ITEM)) > 0
        self.earliest = stamps.copy()
        self.earliest[marked] = np.minimum(since + 1, stamps[marked])  # it came after that instant
        self.begins = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
        self.ends = np.append(self.begins[1:], len(stamps))
        self.requests = owners[self.begins]
        self._upto = np.concatenate(([0], np.cumsum(self.shown)))
        # Reads of one stamp are as one: nothing tells them apart.
        new = np.concatenate(([True], (stamps[1:] != stamps[:-1]) | (owners[1:] != owners[:-1])))
        self._read_ends = np.append(np.flatnonzero(new)[1:], len(stamps))[np.cumsum(new) - 1]

    def instants(self, places: Ints, begins: Ints) -> Floats:
        """The likely instant of the pieces *places*, of the requests whose first pieces are *begins*.

        Pieces behind it in its read came at the answer's usual pace.  Without a later read the pace is unknown, and it came at
        the stamp, as content does that a server sends in one go.
        """
        numbers = np.searchsorted(self.begins, begins)
        ends, read_ends = self.ends[numbers], self._read_ends[begins]
        later = self._upto[ends] - self._upto[read_ends]
        spread = self.stamps[ends - 1] - self.stamps[begins]
        pace = np.divide(spread, later, out=np.zeros(len(places)), where=later > 0)
        behind = np.maximum(self._upto[self._read_ends[places]] - self._upto[places + 1], 0)
        return np.maximum(self.stamps[places] - np.where(self.earliest[places] < self.stamps[places], behind * pace, 0),
                          self.earliest[places])  # fmt: skip

    def column(self, requests: Ints, values: Any) -> Floats:
        """A column with these *values* of *requests*, absent for others."""
        column = np.full(self.count, np.nan)
        column[requests] = values
        return column


def _first(pieces: _Places) -> dict[str, Column]:
    """The instants of the first content and the first output, the ends of their intervals, and those of the decode time."""
    columns: dict[str, Column] = {}
    begins, requests, last = pieces.begins, pieces.requests, pieces.ends - 1
    likely = pieces.instants(begins, begins)
    columns["first_token_ns"] = pieces.column(requests, likely)
    columns["first_low_ns"] = pieces.column(requests, pieces.earliest[begins])
    columns["first_high_ns"] = pieces.column(requests, pieces.stamps[begins])
    outputs = np.append(np.flatnonzero(pieces.output), len(pieces.stamps))
    first = outputs[np.searchsorted(outputs, begins)]
    known = first < pieces.ends
    first, opening = first[known], begins[known]
    columns["first_output_ns"] = pieces.column(requests[known], pieces.instants(first, opening))
    columns["output_low_ns"] = pieces.column(requests[known], pieces.earliest[first])
    columns["output_high_ns"] = pieces.column(requests[known], pieces.stamps[first])
    # An answer of one instant has no decode time, whenever that was; any other has at least a nanosecond, if it has one at all.
    several = np.add.reduceat(pieces.shown, begins) > 1
    least = np.where(pieces.stamps[last] > likely, 1, 0)
    low = np.maximum(pieces.earliest[last] - pieces.stamps[begins], least)
    high = pieces.stamps[last] - pieces.earliest[begins]
    columns["decode_low_ns"] = pieces.column(requests, np.where(several, low, 0))
    columns["decode_high_ns"] = pieces.column(requests, np.where(several, high, 0))
    return columns


def _offsets(owners: Ints, count: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int64)
