"""Random numbers keyed by their purpose.

No function here has state: each number is a function of (seed, stream, index), so any shard computes any number alone, and
no two purposes share a sequence.  The generator is SplitMix64 used as a counter (Steele, Lea & Flood 2014): the i-th number
of a key is the mix of ``key + (i + 1) * GOLDEN``.  Only functions that make many numbers import numpy; the transforms are
written here because numpy's generators promise no stable streams.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

BLOCK = 4096
"""Count of numbers under one key."""

_GOLDEN, _MIX_A, _MIX_B, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1
"""The step, the two factors and the 64 bits of SplitMix64."""


@lru_cache(256)  # numbers of a block follow one another, and the hash is most of a draw's time
def _key(seed: int, stream: str, block: int, lane: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{stream}:{block}:{lane}".encode()).digest()[:8], "big")


def _mixed(value: int) -> int:
    value &= _MASK
    value = ((value ^ (value >> 30)) * _MIX_A) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_B) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, stream: str, index: int) -> float:
    """One number in (0, 1): element *index* of the stream, the same as :func:`uniforms` gives.  Needs no numpy."""
    block, i = divmod(index, BLOCK)
    return ((_mixed(_key(seed, stream, block, 0) + (i + 1) * _GOLDEN) >> 11) + 0.5) * 2.0**-53


def uniforms(seed: int, stream: str, block: int, count: int, lane: int = 0) -> Floats:
    """The first *count* numbers in (0, 1) of a block (at most BLOCK); *lane* gives further ones for the same indices.

    Raises:
        ValueError: More numbers than a block has.
    """
    import numpy as np

    if not 0 <= count <= BLOCK:
        raise ValueError(f"a block has {BLOCK} numbers, not {count}")
    z = np.uint64(_key(seed, stream, block, lane)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_A)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_B)
    z = z ^ (z >> np.uint64(31))
    numbers: Floats = ((z >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def normal(seed: int, stream: str, index: int) -> float:
    """One standard normal number (Box–Muller over two elements of the stream)."""
    radius = math.sqrt(-2.0 * math.log(uniform(seed, stream, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, stream, 2 * index + 1))


def shuffled(seed: int, epoch: int, count: int, i: int) -> int:
    """Element *i* of the epoch's permutation of ``range(count)``.

    A Feistel network over the next power of four is walked until the value falls below *count*: it needs no table, so any
    shard computes any position.
    """
    if count <= 1:
        return 0
    half = ((count - 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    keys = [_key(seed, "shuffle", epoch, lane) for lane in range(4)]
    while True:
        left, right = i >> half, i & mask
        for key in keys:
            left, right = right, left ^ (_mixed(key + right * _GOLDEN) & mask)
        i = (left << half) | right
        if i < count:
            return i


__all__ = ["BLOCK", "normal", "shuffled", "uniform", "uniforms"]
