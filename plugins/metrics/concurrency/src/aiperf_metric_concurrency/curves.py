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
        """The value from each of these instants on."""
        values = np.empty(len(instants))
        for block in _blocks(instants):
            values[block] = self._on(instants[block])
        return values

    def above_zero(self, instants: Floats) -> NDArray[np.bool_]:
        """Whether the value is above zero from each of these instants on."""
        above = np.empty(len(instants), dtype=bool)
        for block in _blocks(instants):
            above[block] = self._on(instants[block]) > 0
        return above

    def _on(self, instants: Floats) -> Floats:
        place = np.searchsorted(self.at_ns, instants, side="right") - 1
        return np.where(place >= 0, self.values[place], 0.0) if len(self.values) else np.zeros(len(instants))


def steps(events: Events) -> Curve:
    """The curve that changes by these amounts at these instants."""
    at_ns, rises = events
    del events
    order = np.lexsort((rises, at_ns))  # a fixed order of addition, for equal results
    at_ns = at_ns[order]
    levels = rises[order]
    del rises, order
    np.cumsum(levels, out=levels)
    last = np.append(at_ns[1:] != at_ns[:-1], True)[: len(at_ns)]  # one value per instant
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
    begins = _between(curve.at_ns, begin_ns, end_ns)
    if gate is not None:
        begins = _union(begins, _between(gate.at_ns, begin_ns, end_ns))
    begins = np.concatenate([[begin_ns], begins])
    values, widths = curve.on(begins), np.empty(len(begins))
    np.subtract(begins[1:], begins[:-1], out=widths[:-1])
    widths[-1] = end_ns - begins[-1]
    active = None if gate is None else gate.above_zero(begins)
    del begins
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


def _between(at_ns: Floats, begin_ns: float, end_ns: float) -> Floats:
    return at_ns[np.searchsorted(at_ns, begin_ns, side="right") : np.searchsorted(at_ns, end_ns, side="left")]
