"""Step curves over time, and their values with the durations for which they hold.

A curve has a point per request, and several exist at a time: temporary arrays are made in blocks or reuse the memory of
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from aiperf.sdk.columns import Floats
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

Events: TypeAlias = tuple[Floats, Floats]
"""Instants in ns, in any order, and the change at each of them."""

_BLOCK = 1 << 16
"""Instants per block: half a megabyte."""
_NOISE = 1e-9
"""Values below this share of a curve's largest value are rounding errors."""


class Curve(Struct, frozen=True):
    """A value from each instant to the next, the last one without end; zero before the first.  Ascending instants in ns."""

    at_ns: Floats
    values: Floats

    def on(self, instants: Floats) -> Floats:
        """The value from each of these ascending instants on."""
        if instants is self.at_ns:
            return self.values.copy()
        values = np.empty(len(instants))
        for block in blocks_of(instants):
            values[block] = self._on(instants[block])
        return values

    def above_zero(self, instants: Floats) -> NDArray[np.bool_]:
        """Whether the value is above zero from each of these ascending instants on."""
        above = np.empty(len(instants), dtype=bool)
        for block in blocks_of(instants):
            above[block] = self._on(instants[block]) > 0
        return above

    def _on(self, instants: Floats) -> Floats:
        """Each value as often as there are instants while it holds."""
        first, end = np.searchsorted(self.at_ns, instants[[0, -1]], side="right")
        before = self.values[first - 1] if first else 0.0
        edges = np.searchsorted(instants, self.at_ns[first:end], side="left")
        counts = np.diff(edges, prepend=0, append=len(instants))
        return np.repeat(np.append(before, self.values[first:end]), counts)


def steps(events: Events) -> Curve:
    """The curve that changes by these amounts at these instants."""
    at_ns, rises = events
    del events
    order = np.argsort(at_ns)
    at_ns = at_ns[order]
    levels = rises[order]
    del rises, order
    last = np.append(at_ns[1:] != at_ns[:-1], True)[: len(at_ns)]  # one value per instant
    if not last.all():
        several = np.flatnonzero(~(last & np.append(True, last[:-1])))
        found = levels[several]
        levels[several] = found[np.lexsort((found, at_ns[several]))]  # a fixed order of addition, for equal results
    np.cumsum(levels, out=levels)
    if not last.all():
        at_ns, levels = at_ns[last], levels[last]
    noise = _NOISE * max(levels.max(initial=0), -levels.min(initial=0))
    levels[(levels < noise) & (levels > -noise)] = 0
    return Curve(at_ns, levels)


def spans(begin_ns: Floats, end_ns: Floats, heights: Floats) -> Events:
    """The changes of heights that hold from one instant to another; NaN as the end is without end."""
    known = ~np.isnan(end_ns)
    return together((begin_ns, heights), (end_ns[known], -heights[known]))


def together(*events: Events) -> Events:
    """All changes together."""
    return np.concatenate([at_ns for at_ns, _ in events]), np.concatenate([rises for _, rises in events])


def ratio(above: Curve, below: Curve) -> Curve:
    """The quotient; zero where *below* is zero."""
    at_ns = _union(above.at_ns, below.at_ns)
    quotient, divisor = above.on(at_ns), below.on(at_ns)
    positive = divisor > 0
    np.divide(quotient, divisor, out=quotient, where=positive)
    quotient[~positive] = 0
    return Curve(at_ns, quotient)


def weighted(curve: Curve, begin_ns: float, end_ns: float, gate: Curve | None = None) -> tuple[Floats, Floats] | None:
    """The curve's values between two instants, where *gate* is above zero, and how long each holds, in ns; None where that time
    is empty."""
    if not end_ns > begin_ns:
        return None
    begins, values = _between(curve, begin_ns, end_ns)
    if gate is not None and (more := _union(begins, _between(gate, begin_ns, end_ns)[0])) is not begins:
        begins = more
        del values, more
        values = curve.on(begins)
    active = None if gate is None else gate.above_zero(begins)
    begins[:-1] -= begins[1:]  # in their place: a run of a second has a million
    begins[-1] -= end_ns
    widths = np.negative(begins, out=begins)
    if active is not None and not active.all():
        values = values[active]
        widths = widths[active]
    return (values, widths) if len(widths) else None


def _union(first: Floats, second: Floats) -> Floats:
    """The ascending instants of both without repetition; both inputs ascend without repetition, and most are in both."""
    missing = np.empty(len(second), dtype=bool)
    for block in blocks_of(second):
        instants = second[block]
        missing[block] = np.searchsorted(first, instants, side="left") == np.searchsorted(first, instants, side="right")
    if not missing.any():
        return first
    union = np.concatenate([first, second[missing]])
    union.sort(kind="stable")  # merges two ascending runs
    return union


def blocks_of(instants: Floats) -> Iterator[slice]:
    """Places of the array, block by block."""
    return (slice(start, start + _BLOCK) for start in range(0, len(instants), _BLOCK))


def _between(curve: Curve, begin_ns: float, end_ns: float) -> tuple[Floats, Floats]:
    """The first of two instants and the curve's instants between them, and the value from each of them on."""
    first = np.searchsorted(curve.at_ns, begin_ns, side="right")
    some = slice(first, np.searchsorted(curve.at_ns, end_ns, side="left"))
    before = curve.values[first - 1] if first else 0.0
    return np.append(begin_ns, curve.at_ns[some]), np.append(before, curve.values[some])
