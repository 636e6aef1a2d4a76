"""When two numbers are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CLOSE = 1e-6
_MOST = 1 << 1023


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
