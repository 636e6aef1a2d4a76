"""Noise: bytes, and normally distributed samples.

The generator is SplitMix64 as in :mod:`aiperf.sdk.draws`, over arrays that stay in the processor's cache; numpy's own
generators promise no stable streams.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Samples: TypeAlias = NDArray[Any]
    """Of 16-bit integers for depths up to 16, else of 32-bit ones."""

_GOLDEN, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
"""SplitMix64: 2**64 over the golden ratio, the step of its counter; the mask of its 64 bits."""
_MIXES = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
"""Bits of the last shift of SplitMix64."""
_AT_ONCE = 1 << 15
"""Words of 64 bits: 256 KiB."""
_LEVELS = 1 << 16
"""Values that a sample of noise can have."""
SIGMA = 0.16
"""Standard deviation of samples, whose range is 1: the farthest are at 0.67, of two quantiles at 0.95."""


def noise(seed: int, stream: str, index: int, size: int) -> NDArray[np.uint8]:
    """*size* uniformly distributed bytes: element *index* of a stream of them."""
    import numpy as np

    key = int.from_bytes(hashlib.sha256(f"{seed}:{stream}:{index}".encode()).digest()[:8], "big")
    words = np.empty(-(-size // 8), dtype="<u8")
    steps, other = _steps()
    for at in range(0, len(words), _AT_ONCE):
        some = words[at : at + _AT_ONCE]
        shifted = other[: len(some)]
        np.add(steps[: len(some)], np.uint64((key + at * _GOLDEN) & _MASK), out=some)
        for shift, factor in _MIXES:
            np.right_shift(some, np.uint64(shift), out=shifted)
            np.bitwise_xor(some, shifted, out=some)
            np.multiply(some, np.uint64(factor), out=some)
        np.right_shift(some, np.uint64(_LAST_SHIFT), out=shifted)
        np.bitwise_xor(some, shifted, out=some)
    return words.view(np.uint8)[:size]


def samples(seed: int, stream: str, index: int, count: int, depth: int) -> Samples:
    """*count* samples of *depth* bits, normal around 0 with a deviation of SIGMA of the range.

    One of 65,536 quantiles up to 16 bits; above, the sum of two, so that the lower bits vary.
    """
    table = _quantiles(depth)
    places = noise(seed, stream, index, (2 if depth <= 16 else 4) * count).view("<u2")
    drawn: Samples = table[places[:count]]
    if depth > 16:
        drawn += table[places[count:]]
    return drawn


@lru_cache(1)
def _steps() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Multiples of the generator's step from one on, and a scratch array."""
    import numpy as np

    return np.arange(1, _AT_ONCE + 1, dtype=np.uint64) * np.uint64(_GOLDEN), np.empty(_AT_ONCE, dtype=np.uint64)


@lru_cache(1)
def _normal() -> NDArray[np.float64]:
    """The quantiles of the standard normal distribution in the middle of 65,536 equal parts."""
    import numpy as np

    inverse = NormalDist().inv_cdf
    upper = np.array([inverse((level + 0.5) / _LEVELS) for level in range(_LEVELS // 2, _LEVELS)])
    return np.concatenate((-upper[::-1], upper))


@lru_cache(4)
def _quantiles(depth: int) -> Samples:
    import numpy as np

    parts = 1 if depth <= 16 else 2
    scaled: Samples = np.rint(_normal() * (SIGMA * 2.0 ** (depth - 1) / parts**0.5))
    return scaled.astype(np.int16) if depth <= 16 else scaled.astype(np.int32)
