"""Where an axis has ticks, and the numbers beside them: plain ones, with commas, without an offset."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter, ScalarFormatter

_DIVIDED = 2.0
"""Decades of an axis up to which 2 and 5 have ticks, too."""
_MOST_DECADES = 8
"""Ticks of an axis of many decades."""
_WRITTEN_LOW, _WRITTEN_HIGH = 1e-3, 1e6
"""Powers of ten between them are written as numbers."""
_LEAST = 1e-6
"""Smaller numbers are written with an exponent."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class PlainNumbers(ScalarFormatter):
    """Numbers as they are read, ``25,000``: no factor or offset at the end of the axis."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = str(super().__call__(x, pos))
        rounded = 0 < abs(x) < _LEAST and set(text) <= set("−-0.")
        return f"{x:.3g}" if rounded else commas(text)


def commas(text: str) -> str:
    """A number's digits before the point in groups of three."""
    whole, point, rest = text.partition(".")
    sign = whole[: len(whole) - len(whole.lstrip("-−"))]
    digits = whole[len(sign) :]
    return f"{sign}{int(digits):,}{point}{rest}" if digits.isdigit() else text


def plain_ticks(axis: Any, *, whole: bool) -> None:
    """Ticks of an axis that is not in decades.  *whole*: at whole numbers alone."""
    axis.set_major_formatter(PlainNumbers())
    if whole:
        axis.get_major_locator().set_params(integer=True)


def decade_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks of an axis in decades from *low* to *high*."""
    values = decade_values(low, high)
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FixedFormatter([power_of(value) for value in values]))
    axis.set_minor_formatter(NullFormatter())


def decade_values(low: float, high: float) -> list[float]:
    """Powers of ten between *low* and *high*, with their double and fivefold where they are few; two values at least."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    parts = (1, 2, 5) if math.log10(high / low) <= _DIVIDED else (1,)
    step = max(1, -(-(last - first) // _MOST_DECADES))
    values = [part * 10.0**power for power in range(first, last + 1, step) for part in parts]
    found = [value for value in values if low <= value <= high]
    if len(found) > 1:
        return found
    return [float(value) for value in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= value <= high]


def power_of(value: float) -> str:
    """A tick's number: as it is read, or as a power of ten."""
    if _WRITTEN_LOW <= value < _WRITTEN_HIGH:
        return commas(f"{value:.10g}")
    power = math.floor(math.log10(value) + 1e-9)
    factor = value / 10.0**power
    written = f"10{str(power).translate(_SUPERSCRIPTS)}"
    return written if abs(factor - 1) < 1e-9 else f"{factor:.3g}·{written}"
