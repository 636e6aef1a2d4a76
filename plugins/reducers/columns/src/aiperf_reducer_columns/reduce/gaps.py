"""Instants of content and the gaps between them, for a batch; gaps around merged reads are intervals whose sum is known.

Pieces of a merged read before its last event are marked: they came between the instant at which the socket was last seen empty
and the stamp of the read, in their order.  A *span* is a run of gaps between two known instants, or up to the first or the
last content of an answer where that is marked.  The sum of the gaps of a span is known if both ends are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf.sdk.columns import Column, Floats, Ints, Ragged

from aiperf_reducer_columns.reduce.answer import MARKED, SHARED


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


def _intervals(stamps: Ints, kinds: Any, owners: Ints, since: Ints, count: int) -> dict[str, Column]:
    """The gaps, each with bounds."""
    marked = (kinds & MARKED) > 0
    earliest = stamps.copy()
    earliest[marked] = np.minimum(since, stamps[marked])
    is_new = np.ones(len(stamps), dtype=bool)
    is_new[1:] = (owners[1:] != owners[:-1]) | (stamps[1:] != stamps[:-1]) | marked[1:] | marked[:-1]
    is_new &= (kinds & SHARED) == 0
    at, earliest = stamps[is_new].astype(np.float64), earliest[is_new].astype(np.float64)
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
    opening = np.flatnonzero(~later[gaps - 1])  # the first gap of each request
    for name, bound in (("second_low_ns", least), ("second_high_ns", whole)):
        column = np.full(count, np.nan)
        column[owners[gaps[opening]]] = bound[spans[opening]]
        columns[name] = column
    return columns


def _offsets(owners: Ints, count: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int64)
