"""The draw that cuts a lane's first tree, bit for bit that of numpy's ``default_rng``, without numpy.

Workers start without numpy, and the cut of a lane is to be the same in every tool (spec: agentic §5.3).  The generator is
PCG64 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms", 2014; XSL-RR output on a 128-bit
linear congruential state), seeded by the hash of numpy's ``SeedSequence``.
"""

from __future__ import annotations

from hashlib import sha256

_WORD_BITS, _POOL_WORDS = 32, 4
"""Bits of a word of the seed's hash, and words of its pool."""
_WORD, _LONG = (1 << _WORD_BITS) - 1, (1 << 128) - 1
"""Masks of a word, and of the generator's state."""
_MULTIPLIER = (2549297995355413924 << 64) + 4865540595714422341
"""Of the linear congruential generator."""


def cut_point(seed: int, trace: str, lane: int) -> float:
    """Where between its two bounds the lane's first tree is cut, from 0 up to 1."""
    digest = sha256(f"{seed}:{trace}:{lane}".encode()).digest()
    return first_uniform(int.from_bytes(digest[:8], "big"))


def first_uniform(seed: int) -> float:
    """The first ``random()`` of ``numpy.random.default_rng(seed)``; *seed* from 0 up to 2**64."""
    words = _expanded(seed)
    high, low, inc_high, inc_low = (words[2 * at] | words[2 * at + 1] << 32 for at in range(4))
    increment = ((inc_high << 64 | inc_low) << 1 | 1) & _LONG
    state = (increment + (high << 64 | low)) & _LONG  # one step from 0, then the seed is added
    for _ in range(2):  # a step ends the seeding, another one gives the first number
        state = (state * _MULTIPLIER + increment) & _LONG
    folded, turns = (state >> 64) ^ (state & (1 << 64) - 1), state >> 122
    rotated = (folded >> turns | folded << (-turns & 63)) & (1 << 64) - 1
    return float(rotated >> 11) / (1 << 53)


def _expanded(seed: int) -> list[int]:
    """Eight words of 32 bits that the seed is expanded to."""
    given = [seed & _WORD, *([seed >> _WORD_BITS] if seed >> _WORD_BITS else [])]
    constant = 0x43B0D7E5

    def mixed_in(value: int) -> int:
        nonlocal constant
        value = (value ^ constant) & _WORD
        constant = constant * 0x931E8875 & _WORD
        value = value * constant & _WORD
        return value ^ value >> 16

    pool = [mixed_in(given[at] if at < len(given) else 0) for at in range(_POOL_WORDS)]
    for source in range(_POOL_WORDS):
        for target in range(_POOL_WORDS):
            if source != target:
                pool[target] = _mixed(pool[target], mixed_in(pool[source]))
    constant, words = 0x8B51F9DD, []
    for at in range(2 * _POOL_WORDS):
        value = (pool[at % _POOL_WORDS] ^ constant) & _WORD
        constant = constant * 0x58F38DED & _WORD
        value = value * constant & _WORD
        words.append(value ^ value >> 16)
    return words


def _mixed(one: int, other: int) -> int:
    value = (one * 0xCA01F9DD - other * 0x4973F715) & _WORD
    return value ^ value >> 16
