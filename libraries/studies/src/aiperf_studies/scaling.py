"""Values of a dimension from numbers between 0 and 1."""

from __future__ import annotations

import math

from aiperf.sdk.study import Dimension, Setting


def scaled(share: float, dimension: Dimension) -> Setting:
    """The value at *share*, in [0, 1), of the dimension's range, or among its choices, which have equal parts.

    A logarithmic range is even in the logarithm.  An ``int`` is rounded, halves to even, and kept inside the bounds.
    """
    choices = dimension.choices or dimension.values
    if choices:
        return choices[min(int(share * len(choices)), len(choices) - 1)]
    low, high = bounds(dimension)
    if dimension.scale == "log":
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    else:
        value = low + share * (high - low)
    if dimension.kind == "int":
        return max(math.ceil(low), min(round(value), math.floor(high)))
    return min(max(value, low), high)


def bounds(dimension: Dimension) -> tuple[float, float]:
    """The range of a dimension.

    Raises:
        ValueError: It has none that can be drawn from; the message completes a sentence that begins with its path.
    """
    low, high = dimension.low, dimension.high
    if low is None or high is None:
        raise ValueError("has neither values, nor choices, nor a range")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"has the range {low:g} to {high:g}, and bounds must be finite")
    if low >= high:
        raise ValueError(f"has the range {low:g} to {high:g}, and the upper bound must be larger")
    if dimension.scale == "log" and low <= 0:
        raise ValueError(f"has a logarithmic range from {low:g}, and that must begin above 0")
    if dimension.kind == "int" and math.ceil(low) > math.floor(high):
        raise ValueError(f"has the range {low:g} to {high:g}, in which there is no whole number")
    return low, high
