"""Lists of block ids, packed so that their common beginnings are found fast."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

WIDTH = 8
"""Bytes of a packed id."""


def packed(blocks: Sequence[int]) -> bytes:
    """The ids as bytes; equal lists are equal bytes.

    Raises:
        OverflowError: An id has more than 64 bits.
    """
    return (blocks if isinstance(blocks, array) and blocks.typecode == "q" else array("q", blocks)).tobytes()


def common(one: bytes, other: bytes) -> int:
    """With how many equal ids two packed lists begin."""
    low, high = 0, min(len(one), len(other)) // WIDTH
    if one[: high * WIDTH] == other[: high * WIDTH]:
        return high
    while high - low > 1:  # the first *low* ids are equal, the first *high* are not
        middle = (low + high) // 2
        if one[low * WIDTH : middle * WIDTH] == other[low * WIDTH : middle * WIDTH]:
            low = middle
        else:
            high = middle
    return low
