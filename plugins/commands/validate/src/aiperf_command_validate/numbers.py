"""When two numbers are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CLOSE = 1e-6
"""The largest relative difference of numbers that are the same."""
_MOST = 1 << 1023
"""Whole numbers from here on don't fit into a float."""


def is_number(value: Any) -> bool:
    """Whether it is a finite number that floating point can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST


def close(value: float, other: float, absolute: float = 1e-9) -> bool:
    return math.isclose(value, other, rel_tol=CLOSE, abs_tol=absolute)


def value_of(metrics: Mapping[str, dict[str, Any]], tag: str) -> float | None:
    """The main number of a metric; None where it has none."""
    value = metrics.get(tag, {}).get("avg")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
