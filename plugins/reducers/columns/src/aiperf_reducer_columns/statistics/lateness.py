"""When an arrival counts as late."""

from __future__ import annotations

from aiperf.sdk.plan import PhasePlan

SLIP_NS = 1_000_000
SLIP_SHARE = 0.05
"""An arrival is late that starts by more than 1 ms and more than this share of the mean gap after its due time."""


def late_ns(phase: PhasePlan) -> float:
    """An arrival that starts later than this behind its due time counts as late."""
    return max(SLIP_NS, SLIP_SHARE * 1e9 / phase.rate if phase.rate else 0)
