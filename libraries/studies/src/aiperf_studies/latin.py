"""Latin hypercubes: of n points, each coordinate has one in each of n equal strata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from aiperf.sdk.draws import BLOCK, uniforms

from aiperf_studies.sobol import MOST_DIMENSIONS, sobol_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTIMIZATIONS = ("random-cd", "lloyd")
_STREAM = "latin"
_MOST_EXCHANGES, _EXCHANGE_WORK = 2_000, 100_000_000
"""Exchanges that ``random-cd`` tries, and the multiplications that they may take together."""
_LLOYD_ROUNDS, _PROBES_PER_POINT, _MOST_PROBES, _LLOYD_WORK = 10, 64, 1 << 16, 1 << 25
"""Rounds of ``lloyd``, the probes by which it knows a cell's centre, and the distances that a round may take."""


def latin_hypercube(count: int, dimensions: int, *, seed: int = 0, optimization: str | None = None) -> NDArray[np.float64]:
    """*count* points as an array (count, dimensions) of numbers in [0, 1), drawn by *seed*.

    optimization: ``random-cd`` exchanges coordinates of two points while that lowers the centered discrepancy (Hickernell
    1998), and they remain a Latin hypercube; ``lloyd`` moves points towards the centres of their Voronoi cells, after which
    strata may hold two or none; None does neither.  Both do less, or nothing, where points are many.

    Raises:
        ValueError: The optimization is another word, or Lloyd's needs more dimensions than there are probes for.
    """
    if optimization not in (None, *OPTIMIZATIONS):
        raise ValueError(f"{optimization!r} is no optimization of a Latin hypercube: choose {' or '.join(OPTIMIZATIONS)}")
    points = np.empty((count, dimensions))
    for dimension in range(dimensions):
        order = np.argsort(_draws(count, seed, f"{_STREAM}-order", dimension), kind="stable")
        points[order, dimension] = (np.arange(count) + _draws(count, seed, f"{_STREAM}-place", dimension)) / count
    if optimization == "random-cd":
        _exchange(points, seed)
    elif optimization == "lloyd":
        points = _spread(points, seed)
    return points


def _draws(count: int, seed: int, stream: str, lane: int) -> NDArray[np.float64]:
    blocks = [uniforms(seed, stream, block, min(BLOCK, count - block * BLOCK), lane) for block in range(-(-count // BLOCK))]
    return np.concatenate(blocks) if blocks else np.empty(0)


def centered_discrepancy(points: NDArray[np.float64]) -> float:
    """The squared centered L2 discrepancy, less its constant term, of points in the unit cube: smaller is more even.

    Source: F. J. Hickernell, "A generalized discrepancy and quadrature error bound" (1998).
    """
    count, distance = len(points), np.abs(points - 0.5)
    single = np.prod(1 + 0.5 * distance - 0.5 * distance**2, axis=1)
    pairs = sum(float(_row(points, distance, index).sum()) for index in range(count))
    return float(pairs / count**2 - 2 / count * single.sum())


def _row(points: NDArray[np.float64], distance: NDArray[np.float64], index: int) -> NDArray[np.float64]:
    """The products of a point with all points."""
    apart = np.abs(points - points[index])
    products: NDArray[np.float64] = np.prod(1 + 0.5 * distance + 0.5 * distance[index] - 0.5 * apart, axis=1)
    return products


def _exchange(points: NDArray[np.float64], seed: int) -> None:
    """Exchange a coordinate of two points again and again, and keep what lowers the discrepancy."""
    count, dimensions = points.shape
    if count < 2 or dimensions < 2:
        return
    tries = min(_MOST_EXCHANGES, _EXCHANGE_WORK // (4 * count * dimensions))
    draws = [_draws(tries, seed, f"{_STREAM}-exchange", lane) for lane in range(3)]
    distance = np.abs(points - 0.5)
    for number in range(tries):
        column = int(draws[0][number] * dimensions)
        first, second = int(draws[1][number] * count), int(draws[2][number] * (count - 1))
        second += second >= first
        before = _share(points, distance, first, second)
        _swap(points, distance, first, second, column)
        if _share(points, distance, first, second) >= before:
            _swap(points, distance, first, second, column)


def _swap(points: NDArray[np.float64], distance: NDArray[np.float64], first: int, second: int, column: int) -> None:
    for each in (points, distance):
        each[first, column], each[second, column] = each[second, column], each[first, column]


def _share(points: NDArray[np.float64], distance: NDArray[np.float64], first: int, second: int) -> float:
    """The part of the discrepancy that two points have in it, times the square of the number of points."""
    count, total = len(points), 0.0
    for index in (first, second):
        row = _row(points, distance, index)
        single = np.prod(1 + 0.5 * distance[index] - 0.5 * distance[index] ** 2)
        total += 2 * float(row.sum()) - float(row[index]) - 2 * count * float(single)
        total -= float(row[second]) if index == first else float(row[first])  # their pair stands in both rows
    return total


def _spread(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Points moved to the mean of the probes that are nearest to them, as often as that is affordable (Du et al. 1999)."""
    count, dimensions = points.shape
    if dimensions > MOST_DIMENSIONS:
        raise ValueError(f"the optimization lloyd takes at most {MOST_DIMENSIONS} dimensions, not {dimensions}")
    probes = min(_MOST_PROBES, _PROBES_PER_POINT * count, _LLOYD_WORK // max(1, count * dimensions))
    if probes < 4 * count:
        return points
    cloud = sobol_points(probes, dimensions, scramble=True, seed=seed)
    for _ in range(_LLOYD_ROUNDS):
        nearest = np.concatenate([_nearest(part, points) for part in np.array_split(cloud, -(-probes * count // (1 << 22)))])
        members = np.bincount(nearest, minlength=count)
        sums = np.stack([np.bincount(nearest, cloud[:, column], count) for column in range(dimensions)], axis=1)
        points = np.where(members[:, None] > 0, sums / np.maximum(members, 1)[:, None], points)
    return points


def _nearest(cloud: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index of the nearest point of each of the cloud."""
    squares = np.zeros((len(cloud), len(points)))
    for column in range(points.shape[1]):
        squares += (cloud[:, None, column] - points[None, :, column]) ** 2
    found: NDArray[np.int64] = np.argmin(squares, axis=1)
    return found
