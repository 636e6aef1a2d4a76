"""Values of ranks among more values than memory should hold: exact, in a few passes over blocks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints
    from numpy.typing import NDArray

HELD = 1 << 18
"""Values that are sorted in memory: 2 MB."""
_CUTS = (48, 36, 24, 12, 0)
"""Lowest bits of a value's number that each pass looks at: of 16 bits first, which are sign, exponent and 4 bits more, then of
12 bits each."""
_SIGN = np.uint64(1 << 63)
_TOGETHER = 1 << 16
"""Values that are looked at together, from as many blocks as it takes."""


def values_at(blocks: Callable[[], Iterable[Floats]], ranks: Sequence[int]) -> dict[int, float]:
    """The value of each of these *ranks*, from 0, in ascending order of all values; *blocks* gives these anew for each pass.

    Selection by digits: the bits of floats, as whole numbers, are ordered as the floats are.  A pass counts the values by their
    next digits, in those places alone where a rank is; as soon as few values are left there, they are sorted.
    """
    wanted = np.array(sorted(set(ranks)), dtype=np.int64)
    places, below = np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.int64)  # digits of a place, and values below it
    top = 64
    for cut in _CUTS:
        counts = _counts(blocks, places, top, cut)
        width = top - cut
        ends = below[:, None] + np.cumsum(counts, axis=1)
        # The place of each rank: the last one with fewer values below it, and in it the digit.
        rows = np.searchsorted(below, wanted, side="right") - 1
        digits = np.array([np.searchsorted(ends[row], rank, side="right") for row, rank in zip(rows, wanted, strict=True)])
        found = (places[rows] << np.uint64(width)) | digits.astype(np.uint64)
        before = ends[rows, digits] - counts[rows, digits]
        sizes = counts[rows, digits]
        places, first = np.unique(found, return_index=True)
        below, left, top = before[first], sizes[first], cut
        if cut and left.sum() <= HELD:
            return _sorted(blocks, wanted, places, below, cut)
    numbers = np.where(places >= _SIGN, places ^ _SIGN, ~places)  # all digits are known
    rows = np.searchsorted(below, wanted, side="right") - 1
    return dict(zip(wanted.tolist(), numbers.view(np.float64)[rows].tolist(), strict=True))


def _counts(blocks: Callable[[], Iterable[Floats]], places: NDArray[np.uint64], top: int, cut: int) -> Ints:
    """Values in each of these *places*, whose digits end above *top*, by the digits from there down to *cut*."""
    base = 1 << (top - cut)
    counts = np.zeros(len(places) * base, dtype=np.int64)
    for numbers in _numbers(blocks):
        if top == 64:
            counts += np.bincount((numbers >> np.uint64(cut)).astype(np.int64), minlength=len(counts))
            continue
        rows, inside = _rows(numbers, places, top)
        digits = (numbers[inside] >> np.uint64(cut)) & np.uint64(base - 1)
        counts += np.bincount(rows * base + digits.astype(np.int64), minlength=len(counts))
    return counts.reshape(len(places), base)


def _sorted(
    blocks: Callable[[], Iterable[Floats]], wanted: Ints, places: NDArray[np.uint64], below: Ints, top: int
) -> dict[int, float]:  # fmt: skip
    """Sort the few values that are left in the *places* of the ranks *wanted*."""
    parts: list[NDArray[np.uint64]] = [numbers[_rows(numbers, places, top)[1]] for numbers in _numbers(blocks)]
    numbers = np.sort(np.concatenate(parts))
    begins = np.searchsorted(numbers, places << np.uint64(top))
    rows = np.searchsorted(below, wanted, side="right") - 1
    chosen = numbers[begins[rows] + wanted - below[rows]]
    chosen = np.where(chosen >= _SIGN, chosen ^ _SIGN, ~chosen)
    return dict(zip(wanted.tolist(), chosen.view(np.float64).tolist(), strict=True))


def _rows(numbers: NDArray[np.uint64], places: NDArray[np.uint64], top: int) -> tuple[Ints, NDArray[np.bool_]]:
    """The places of those numbers that are in one, and which these are."""
    digits = numbers >> np.uint64(top)
    rows = np.minimum(np.searchsorted(places, digits), len(places) - 1)
    inside = places[rows] == digits
    return rows[inside], inside


def _numbers(blocks: Callable[[], Iterable[Floats]]) -> Iterator[NDArray[np.uint64]]:
    """The values as whole numbers in the same order, many at a time: shards may have a few each.  -0.0 is 0.0."""
    for values in gathered(blocks()):
        bits = (values + 0.0).view(np.uint64)
        yield np.where(bits >= _SIGN, ~bits, bits | _SIGN)


def gathered(blocks: Iterable[Floats]) -> Iterator[Floats]:
    """The values of small blocks together, and large blocks in pieces."""
    held: list[Floats] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count >= _TOGETHER:
            values = held[0] if len(held) == 1 else np.concatenate(held)
            edges = [*range(0, count, _TOGETHER), count]
            yield from (values[begin:end] for begin, end in pairwise(edges))
            held, count = [], 0
    if count:
        yield np.concatenate(held)
