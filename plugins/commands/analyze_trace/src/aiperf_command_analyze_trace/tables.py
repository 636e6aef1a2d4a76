"""Numbers for keys, in arrays: what a dictionary does, for millions of keys at a dozen bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_FIRST, _FULL = 1 << 12, 0.7
"""Places of a new table; the share of filled places from which it grows."""
_GOLDEN, _MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(keys: Keys) -> Keys:
    """A bijection of 64-bit numbers whose bits look random: the finalizer of SplitMix64 (Steele, Lea & Flood 2014)."""
    z = keys + _GOLDEN
    z ^= z >> np.uint64(30)
    z *= _MIX_A
    z ^= z >> np.uint64(27)
    z *= _MIX_B
    z ^= z >> np.uint64(31)
    return z


class Table:
    """Gives each key a number, from 0, and the same key the same number.  Open addressing, linear probing."""

    def __init__(self) -> None:
        self.size = 0
        self._keys, self._numbers = _empty(_FIRST)

    def numbers(self, keys: Keys) -> Numbers:
        """The number of each key; new keys get the next ones, in any order."""
        wanted = len(self._keys)
        while self.size + len(keys) > wanted * _FULL:
            wanted *= 2
        if wanted > len(self._keys):
            self._grow(wanted)
        numbers = np.empty(len(keys), np.int64)
        places = self._home(keys)
        at = np.arange(len(keys))
        while len(at):
            here, key = places[at], keys[at]
            self._claim(here, key)
            found = self._keys[here] == key
            numbers[at[found]] = self._numbers[here[found]]
            at = at[~found]
            places[at] = (places[at] + 1) & (len(self._keys) - 1)
        return numbers

    def _claim(self, places: Numbers, keys: Keys) -> None:
        """Put keys where nothing is; of several keys for one place one stays."""
        free = self._numbers[places] < 0
        if not free.any():
            return
        places, keys = places[free], keys[free]
        self._keys[places] = keys
        claimed = np.unique(places)
        self._numbers[claimed] = np.arange(self.size, self.size + len(claimed), dtype=np.int32)
        self.size += len(claimed)

    def _home(self, keys: Keys) -> Numbers:
        shift = np.uint64(64 - (len(self._keys).bit_length() - 1))
        return (mixed(keys) >> shift).astype(np.int64)

    def _grow(self, places: int) -> None:
        used = self._numbers >= 0
        keys, numbers = self._keys[used], self._numbers[used]
        self._keys, self._numbers = _empty(places)
        # The keys differ, so a place that nothing has is taken by one, and the others look further.
        at, slots = np.arange(len(keys)), self._home(keys)
        while len(at):
            here = slots[at]
            free = self._numbers[here] < 0
            self._numbers[here[free]] = numbers[at[free]]
            won = free & (self._numbers[here] == numbers[at])
            self._keys[here[won]] = keys[at[won]]
            at = at[~won]
            slots[at] = (slots[at] + 1) & (places - 1)


def _empty(places: int) -> tuple[Keys, NDArray[np.int32]]:
    return np.zeros(places, np.uint64), np.full(places, -1, np.int32)


class Growing:
    """An array that grows at its end by a quarter of its size."""

    def __init__(self, kind: Any, fill: int = 0) -> None:
        self._values, self._fill, self.size = np.full(_FIRST, fill, kind), fill, 0

    def reach(self, size: int) -> NDArray[Any]:
        """The first *size* values, those that are new have the fill; to be read and written until the next call."""
        if size > len(self._values):
            more = np.full(max(size, len(self._values) * 5 // 4), self._fill, self._values.dtype)
            more[: self.size] = self._values[: self.size]
            self._values = more
        self.size = max(self.size, size)
        return self._values[:size]

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self.size]


def first_at(numbers: Numbers, known: int, size: int) -> Numbers:
    """Where each number from *known* to *size* - 1 first occurs in *numbers*, in the order of the numbers."""
    at = np.flatnonzero(numbers >= known)[::-1]
    first = np.empty(size - known, np.int64)
    first[numbers[at] - known] = at  # of several places the last one that is written stays: the first
    return first
