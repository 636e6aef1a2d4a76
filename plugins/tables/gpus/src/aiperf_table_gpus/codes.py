"""The bits of the mask of throttle reasons, as NVML's documentation names them."""

from __future__ import annotations

from collections.abc import Iterable

_REASONS = {
    0x2: "applications clocks setting", 0x4: "software power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "hardware power brake",
    0x100: "display clock setting",
}  # fmt: skip
"""By bit; 0x1 says that the GPU is idle, which holds nothing down."""


def reasons(masks: Iterable[int]) -> str:
    """The reasons in any of the masks, with commas; empty for none."""
    seen = 0
    for mask in masks:
        seen |= mask & ~0x1
    known = [name for bit, name in _REASONS.items() if seen & bit]
    rest = seen & ~sum(_REASONS)
    return ", ".join([*known, *([f"bits {rest:#x}"] if rest else [])])


__all__ = ["reasons"]
