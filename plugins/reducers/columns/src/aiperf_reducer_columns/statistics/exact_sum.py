"""Sums of floats without rounding: the order of adding changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints

_MANTISSA = 53
"""Bits of a float's mantissa."""
_EXACT = float(1 << _MANTISSA)
_SPLIT = 26
"""Bits of the lower half of a whole number: sums of halves fit into 64 bits."""
_NEAR = float(1 << 31)
"""Squares of smaller numbers are whole numbers of 64 bits."""
_BLOCK = 65_536
"""Values that are summed together."""


class Sum(Struct):
    """A sum of floats without rounding, as a few floats that add up to it; the order of adding doesn't change it."""

    parts: list[float] = []

    def add(self, values: Floats) -> None:
        more = exactly(values)
        if not self.parts and more.denominator == 1 and abs(more.numerator) < _EXACT:
            self.parts = [float(more.numerator)] if more else []
        else:
            self._take(more)

    def merge(self, other: Sum) -> None:
        self._take(sum(map(Fraction, other.parts), Fraction()))

    def shortest(self) -> int | Fraction:
        """The sum, as an integer where it is one number without a fraction: integers are added sooner."""
        parts = self.parts
        return int(parts[0]) if len(parts) == 1 and parts[0].is_integer() else self.exact() if parts else 0

    def exact(self) -> Fraction:
        return sum(map(Fraction, self.parts), Fraction())

    def _take(self, more: Fraction) -> None:
        remainder = self.exact() + more
        parts = []
        while remainder:
            parts.append(float(remainder))
            remainder -= Fraction(parts[-1])
        self.parts = parts

    def __float__(self) -> float:
        return self.parts[0] if self.parts else 0.0


def exactly(values: Floats) -> Fraction:
    """The sum of finite values, by adding integers; a block at a time, because each is copied several times."""
    return sum((_exactly(values[at : at + _BLOCK]) for at in range(0, len(values), _BLOCK)), Fraction())


def squared_distances(values: Floats, total: Fraction) -> float:
    """The sum of the squared distances from the mean; the order of the values changes nothing.  *total*: of the values."""
    mean = total / len(values)
    if len(values) > _BLOCK:
        blocks = [values[at : at + _BLOCK] for at in range(0, len(values), _BLOCK)]
        centre = round(mean)
        near = max(float(values.max()) - centre, centre - float(values.min())) < _NEAR and abs(centre) < _EXACT
        if near and all((np.rint(block) == block).all() for block in blocks):  # ns and tokens: nearly always
            squares = sum(_squares(block.astype(np.int64) - centre) for block in blocks)
            return float(squares - (total - len(values) * centre) ** 2 / len(values))
    ordered, middle = np.sort(values), float(mean)
    return math.fsum(float(np.square(ordered[at : at + _BLOCK] - middle).sum()) for at in range(0, len(ordered), _BLOCK))


def deviation(blocks: Callable[[], Iterable[Floats]], total: Fraction, count: int, low: float, high: float) -> float:
    """The standard deviation of values that *blocks* gives anew for each pass; neither their order nor their blocks change it.

    *total*, *count*, *low*, *high*: their sum, number and extremes.
    """
    mean = total / count
    centre = round(mean)
    if max(high - centre, centre - low) < _NEAR and abs(centre) < _EXACT:
        squares = 0
        for block in blocks():
            if not (np.rint(block) == block).all():
                break
            squares += _squares(block.astype(np.int64) - centre)
        else:
            return math.sqrt((squares - (total - count * centre) ** 2 / count) / count)
    middle = float(mean)
    return math.sqrt(sum((exactly(np.square(block - middle)) for block in blocks()), Fraction()) / count)


def _squares(distances: Ints) -> int:
    """The sum of the squares of a block; changes it."""
    distances *= distances
    return (int((distances >> _SPLIT).sum()) << _SPLIT) + int((distances & ((1 << _SPLIT) - 1)).sum())


def _exactly(values: Floats) -> Fraction:
    largest = max(float(values.max()), -float(values.min()))
    if largest < _EXACT:
        whole = values.astype(np.int64)
        if (whole == values).all():  # ns and tokens: nearly always
            if largest * len(whole) < _EXACT:
                return Fraction(int(whole.sum()))
            low = whole & ((1 << _SPLIT) - 1)
            return Fraction((int((whole >> _SPLIT).sum()) << _SPLIT) + int(low.sum()))
    fractions, exponents = np.frexp(values)
    mantissas = (fractions * _EXACT).astype(np.int64)
    high, low = mantissas >> _SPLIT, mantissas & ((1 << _SPLIT) - 1)
    total = Fraction()
    for exponent in np.unique(exponents).tolist():
        here = exponents == exponent
        units = (int(high[here].sum()) << _SPLIT) + int(low[here].sum())
        total += Fraction(units) * Fraction(2) ** (exponent - _MANTISSA)
    return total
