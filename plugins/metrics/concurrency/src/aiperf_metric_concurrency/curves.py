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
        return np.repeat(np.append(0.0, self.values), self._counts(instants))

    def above_zero(self, instants: Floats) -> NDArray[np.bool_]:
        """Whether the value is above zero from each of these ascending instants on."""
        return np.repeat(np.append(False, self.values > 0), self._counts(instants))

    def _counts(self, instants: Floats) -> NDArray[np.int64]:
        """How many of the instants are before the first value, and then where each value holds."""
        edges = np.searchsorted(instants, self.at_ns, side="left")
        return np.diff(edges, prepend=0, append=len(instants))


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
    own, values = _between(curve, begin_ns, end_ns)
    begins = own if gate is None else _union(own, _between(gate, begin_ns, end_ns)[0])
    if begins is not own:
        values = curve.on(begins)
    widths = np.empty(len(begins))
    np.subtract(begins[1:], begins[:-1], out=widths[:-1])
    widths[-1] = end_ns - begins[-1]
    active = None if gate is None else gate.above_zero(begins)
    if active is not None and not active.all():
        values = values[active]
        widths = widths[active]
    return (values, widths) if len(widths) else None


def _union(first: Floats, second: Floats) -> Floats:
    """The ascending instants of both without repetition; both inputs ascend without repetition, and most are in both."""
    missing = np.empty(len(second), dtype=bool)
    for block in _blocks(second):
        instants = second[block]
        missing[block] = np.searchsorted(first, instants, side="left") == np.searchsorted(first, instants, side="right")
    if not missing.any():
        return first
    union = np.concatenate([first, second[missing]])
    union.sort(kind="stable")  # merges two ascending runs
    return union


def _blocks(instants: Floats) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, len(instants), _BLOCK))


def _between(curve: Curve, begin_ns: float, end_ns: float) -> tuple[Floats, Floats]:
    """The first of two instants and the curve's instants between them, and the value from each of them on."""
    first = np.searchsorted(curve.at_ns, begin_ns, side="right")
    some = slice(first, np.searchsorted(curve.at_ns, end_ns, side="left"))
    before = curve.values[first - 1] if first else 0.0
    return np.append(begin_ns, curve.at_ns[some]), np.append(before, curve.values[some])
