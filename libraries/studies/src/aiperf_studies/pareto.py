"""Points that no other point is better than."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby


def pareto(points: Sequence[Sequence[float | None]], maximize: Sequence[bool]) -> list[int]:
    """The indices, ascending, of points that no other point dominates: none is as good everywhere and better somewhere.

    *maximize*: by coordinate, whether more is better.  A point with an unknown coordinate (None or not finite) is left out;
    equal points stand or fall together.  Two coordinates take O(n log n), three and more O(n²) in the worst case.
    """
    losses = sorted((loss, index) for index, point in enumerate(points) if (loss := _loss(point, maximize)) is not None)
    return sorted(_swept(losses) if len(maximize) <= 2 else _filtered(losses))


def _loss(point: Sequence[float | None], maximize: Sequence[bool]) -> tuple[float, ...] | None:
    """The coordinates with signs by which less is better; None where one is unknown."""
    known = [value for value in point if value is not None and math.isfinite(value)]
    if len(known) < len(maximize):
        return None
    return tuple(-value if up else value for value, up in zip(known, maximize, strict=True))


def _swept(losses: Sequence[tuple[tuple[float, ...], int]]) -> list[int]:
    """The points, given in the order of their losses, whose second loss is below all before."""
    kept: list[int] = []
    least = math.inf
    for loss, equal in groupby(losses, key=lambda each: each[0]):
        second = loss[1] if len(loss) > 1 else (0.0 if not kept else math.inf)
        if second < least:
            least = second
            kept.extend(index for _, index in equal)
    return kept


def _filtered(losses: Sequence[tuple[tuple[float, ...], int]]) -> list[int]:
    """The points, given in the order of their losses, that none kept before dominates: what comes later can't."""
    import numpy as np  # a run that is no study asks for no front

    kept: list[int] = []
    front = np.empty((0, len(losses[0][0]) if losses else 0))
    for loss, index in losses:
        row = np.array(loss)
        if not bool(np.any(np.all(front <= row, axis=1) & np.any(front < row, axis=1))):
            front = np.vstack([front, row])
            kept.append(index)
    return kept


def best(values: Sequence[float | None], *, maximize: bool) -> int | None:
    """The index of the largest or smallest known value, the first of equal ones; None where none is known."""
    known = [(index, value) for index, value in enumerate(values) if value is not None and math.isfinite(value)]
    if not known:
        return None
    return min(known, key=lambda each: (-each[1] if maximize else each[1], each[0]))[0]
