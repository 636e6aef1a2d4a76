"""Step curves over time, and their statistics weighted by how long each value held."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Events: TypeAlias = tuple[Floats, Floats]
"""Instants, in ns and in any order, and by how much something rises at each."""

_PERCENTILES = (50, 90, 95, 99)
_NOISE = 1e-9
"""Share of a curve's largest value below which a value is what is left of adding and taking away."""


class Curve(Struct, frozen=True):
    """A value from each instant to the next, the last one for good; zero before the first.  Instants ascend, in ns."""

    at_ns: Floats
    values: Floats

    def on(self, instants: Floats) -> Floats:
        """The value from each of these instants on."""
        place = np.searchsorted(self.at_ns, instants, side="right") - 1
        return np.where(place >= 0, self.values[place], 0.0) if len(self.values) else np.zeros(len(instants))


def steps(events: Events) -> Curve:
    """What rises, or falls, by so much at each of these instants, in any order."""
    at_ns, rises = events
    order = np.lexsort((rises, at_ns))  # whatever order they came in, they are added in one
    at_ns, levels = at_ns[order], np.cumsum(rises[order])
    last = np.append(at_ns[1:] != at_ns[:-1], True)[: len(at_ns)]  # all that happens at an instant happens at once
    levels = levels[last]
    levels[np.abs(levels) < _NOISE * np.abs(levels).max(initial=0)] = 0
    return Curve(at_ns[last], levels)


def spans(begin_ns: Floats, end_ns: Floats, heights: Floats) -> Events:
    """Something that holds from one instant to another; an end that isn't known never comes."""
    known = ~np.isnan(end_ns)
    return together((begin_ns, heights), (end_ns[known], -heights[known]))


def together(*events: Events) -> Events:
    """All of them."""
    return np.concatenate([at_ns for at_ns, _ in events]), np.concatenate([rises for _, rises in events])


def ratio(above: Curve, below: Curve) -> Curve:
    """The quotient; zero where there is nothing to divide by."""
    at_ns = np.union1d(above.at_ns, below.at_ns)
    divisor = below.on(at_ns)
    return Curve(at_ns, np.divide(above.on(at_ns), divisor, out=np.zeros(len(at_ns)), where=divisor > 0))


def statistics(curve: Curve, begin_ns: float, end_ns: float, gate: Curve | None = None) -> dict[str, float] | None:
    """Of the curve from one instant to another, where *gate* is above zero; None where that is no time at all.

    A percentile is the least value that the curve is at or below for so much of the time.
    """
    if not end_ns > begin_ns:
        return None
    begins = _between(curve.at_ns, begin_ns, end_ns)
    if gate is not None:
        begins = np.union1d(begins, _between(gate.at_ns, begin_ns, end_ns))
    begins = np.concatenate([[begin_ns], begins])
    values, widths = curve.on(begins), np.diff(begins, append=end_ns)
    if gate is not None:
        begun = gate.on(begins) > 0
        values, widths = values[begun], widths[begun]
    if not len(widths):
        return None
    whole = float(widths.sum())
    mean = float((values * widths).sum() / whole)
    deviation = float(np.sqrt(((values - mean) ** 2 * widths).sum() / whole))
    order = np.argsort(values, kind="stable")
    values, shares = values[order], np.cumsum(widths[order]) / whole
    shares[-1] = 1.0
    at = np.searchsorted(shares, [q / 100 - _NOISE for q in _PERCENTILES])
    percentiles = {f"p{q}": float(value) for q, value in zip(_PERCENTILES, values[at], strict=True)}
    return {"avg": mean, "min": float(values[0]), "max": float(values[-1])} | percentiles | {"std": deviation}


def _between(at_ns: Floats, begin_ns: float, end_ns: float) -> Floats:
    return at_ns[np.searchsorted(at_ns, begin_ns, side="right") : np.searchsorted(at_ns, end_ns, side="left")]
