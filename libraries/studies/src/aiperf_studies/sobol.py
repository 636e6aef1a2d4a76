"""Points of Sobol's sequence, which fill the unit cube evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from aiperf.sdk.draws import uniforms

from aiperf_studies.directions import DIRECTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS = 30
"""Binary digits of a coordinate, and the power of two that bounds the number of points."""
MOST_DIMENSIONS = len(DIRECTIONS) + 1
_STREAM = "sobol"


def sobol_points(count: int, dimensions: int, *, scramble: bool = False, seed: int = 0) -> NDArray[np.float64]:
    """The first *count* points, as an array (count, dimensions) of numbers in [0, 1).

    They come in the order of the Gray code (Antonov & Saleev 1979), from the origin on.  *scramble*: digits are mixed by a
    random lower triangular matrix over GF(2) and shifted (Matoušek 1998), both drawn by *seed*; that keeps the evenness.

    Raises:
        ValueError: There are no direction numbers for so many dimensions, or no digits for so many points.
    """
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ValueError(f"Sobol points have 1 to {MOST_DIMENSIONS} dimensions, not {dimensions}")
    if not 0 <= count <= 1 << BITS:
        raise ValueError(f"Sobol points are at most 2^{BITS}, not {count}")
    numbers = np.arange(count, dtype=np.int64)
    gray = numbers ^ (numbers >> 1)
    points = np.empty((count, dimensions))
    for dimension in range(dimensions):
        directions = _directions(dimension)
        value = np.zeros(count, dtype=np.int64)
        if scramble:
            directions = _mixed(directions, seed, dimension)
            value += _digits(uniforms(seed, f"{_STREAM}-shift", dimension, BITS))
        for digit in range(max(1, count.bit_length())):
            value ^= np.where(gray >> digit & 1, directions[digit], 0)
        points[:, dimension] = value * 2.0**-BITS
    return points


def _directions(dimension: int) -> list[int]:
    """The direction numbers of a dimension, the first digit highest (Bratley & Fox 1988)."""
    if dimension == 0:
        return [1 << BITS - 1 - digit for digit in range(BITS)]
    polynomial, initial = DIRECTIONS[dimension - 1]
    degree = polynomial.bit_length() - 1
    numbers = list(initial)
    for digit in range(degree, BITS):
        following = numbers[digit - degree] ^ (numbers[digit - degree] << degree)
        for power in range(1, degree):
            if polynomial >> (degree - power) & 1:
                following ^= numbers[digit - power] << power
        numbers.append(following)
    return [number << (BITS - 1 - digit) for digit, number in enumerate(numbers)]


def _mixed(directions: list[int], seed: int, dimension: int) -> list[int]:
    """Each direction number times the dimension's matrix: lower triangular, ones on the diagonal, the highest digit first."""
    rows = []
    for row in range(BITS):
        draws = uniforms(seed, f"{_STREAM}-matrix", dimension, BITS, lane=row)
        rows.append(sum(1 << (BITS - 1 - column) for column in range(row) if draws[column] < 0.5) | 1 << (BITS - 1 - row))
    return [
        sum(((number & matrix).bit_count() & 1) << (BITS - 1 - row) for row, matrix in enumerate(rows)) for number in directions
    ]


def _digits(draws: NDArray[np.float64]) -> int:
    return sum(1 << digit for digit, draw in enumerate(draws) if draw < 0.5)
