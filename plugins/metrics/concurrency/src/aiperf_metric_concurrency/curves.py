"""Step curves over time, and their statistics weighted by how long each value held.

A curve is as long as the run has requests, and several live at a time: what is only needed on the way is made in blocks, or in
place of what is needed no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Events: TypeAlias = tuple[Floats, Floats]
"""Instants, in ns and in any order, and by how much something rises at each."""

_PERCENTILES = (50, 90, 95, 99)
_BLOCK = 1 << 16
"""Instants looked at in one go: half a megabyte."""
_NOISE = 1e-9
"""Share of a curve's largest value below which a value is what is left of adding and taking away."""


class Curve(Struct, frozen=True):
    """A value from each instant to the next, the last one for good; zero before the first.  Instants ascend, in ns."""

    at_ns: Floats
    values: Floats

    def on(self, instants: Floats) -> Floats:
        """The value from each of these instants on."""
        found = np.empty(len(instants))
        for here in _blocks(instants):
            found[here] = self._on(instants[here])
        return found

    def above_zero(self, instants: Floats) -> NDArray[np.bool_]:
        """Whether it is, from each of these instants on."""
        found = np.empty(len(instants), dtype=bool)
        for here in _blocks(instants):
            found[here] = self._on(instants[here]) > 0
        return found

    def _on(self, instants: Floats) -> Floats:
        place = np.searchsorted(self.at_ns, instants, side="right") - 1
        return np.where(place >= 0, self.values[place], 0.0) if len(self.values) else np.zeros(len(instants))


def steps(events: Events) -> Curve:
    """What rises, or falls, by so much at each of these instants, in any order."""
    at_ns, rises = events
    del events
    order = np.lexsort((rises, at_ns))  # whatever order they came in, they are added in one
    at_ns = at_ns[order]
    levels = rises[order]
    del rises, order
    np.cumsum(levels, out=levels)
    last = np.append(at_ns[1:] != at_ns[:-1], True)[: len(at_ns)]  # all that happens at an instant happens at once
    if not last.all():
        at_ns, levels = at_ns[last], levels[last]
    noise = _NOISE * max(levels.max(initial=0), -levels.min(initial=0))
    levels[(levels < noise) & (levels > -noise)] = 0
    return Curve(at_ns, levels)


def spans(begin_ns: Floats, end_ns: Floats, heights: Floats) -> Events:
    """Something that holds from one instant to another; an end that isn't known never comes."""
    known = ~np.isnan(end_ns)
    return together((begin_ns, heights), (end_ns[known], -heights[known]))


def together(*events: Events) -> Events:
    """All of them."""
    return np.concatenate([at_ns for at_ns, _ in events]), np.concatenate([rises for _, rises in events])


def ratio(above: Curve, below: Curve) -> Curve:
    """The quotient; zero where there is nothing to divide by."""
    at_ns = _union(above.at_ns, below.at_ns)
    quotient, divisor = above.on(at_ns), below.on(at_ns)
    done = divisor > 0
    np.divide(quotient, divisor, out=quotient, where=done)
    quotient[~done] = 0
    return Curve(at_ns, quotient)


def statistics(curve: Curve, begin_ns: float, end_ns: float, gate: Curve | None = None) -> dict[str, float] | None:
    """Of the curve from one instant to another, where *gate* is above zero; None where that is no time at all.

    A percentile is the least value that the curve is at or below for so much of the time.
    """
    if not end_ns > begin_ns:
        return None
    begins = _between(curve.at_ns, begin_ns, end_ns)
    if gate is not None:
        begins = _union(begins, _between(gate.at_ns, begin_ns, end_ns))
    begins = np.concatenate([[begin_ns], begins])
    values, widths = curve.on(begins), np.empty(len(begins))
    np.subtract(begins[1:], begins[:-1], out=widths[:-1])
    widths[-1] = end_ns - begins[-1]
    begun = None if gate is None else gate.above_zero(begins)
    del begins
    if begun is not None and not begun.all():
        values = values[begun]
        widths = widths[begun]
    if not len(widths):
        return None
    whole = float(widths.sum())
    mean = float((values * widths).sum() / whole)
    apart = values - mean
    apart *= apart
    apart *= widths
    deviation = float(np.sqrt(apart.sum() / whole))
    del apart
    order = np.argsort(values, kind="stable")
    shares = widths[order]
    del widths
    values = values[order]
    del order
    np.cumsum(shares, out=shares)
    shares /= whole
    shares[-1] = 1.0
    at = np.searchsorted(shares, [q / 100 - _NOISE for q in _PERCENTILES])
    percentiles = {f"p{q}": float(value) for q, value in zip(_PERCENTILES, values[at], strict=True)}
    return {"avg": mean, "min": float(values[0]), "max": float(values[-1])} | percentiles | {"std": deviation}


def _union(one: Floats, other: Floats) -> Floats:
    """The instants of both, each once and ascending, as they are in each of them; most are in both."""
    missing = np.empty(len(other), dtype=bool)
    for here in _blocks(other):
        instants = other[here]
        missing[here] = np.searchsorted(one, instants, side="left") == np.searchsorted(one, instants, side="right")
    if not missing.any():
        return one
    both = np.concatenate([one, other[missing]])
    both.sort(kind="stable")  # which merges two runs
    return both


def _blocks(instants: Floats) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, len(instants), _BLOCK))


def _between(at_ns: Floats, begin_ns: float, end_ns: float) -> Floats:
    return at_ns[np.searchsorted(at_ns, begin_ns, side="right") : np.searchsorted(at_ns, end_ns, side="left")]
