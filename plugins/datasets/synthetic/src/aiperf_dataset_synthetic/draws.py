"""Draws of lengths and counts."""

from __future__ import annotations

from aiperf.sdk.draws import normal

_REDRAWS = 64
"""With a mean of at least 0, a draw is negative at most half of the time: 64 in a row are practically impossible."""


def positive_normal(mean: float, stddev: float, seed: int, stream: str, index: int) -> int:
    """A whole number >= 1 from a normal distribution, redrawn until positive; the rounded mean where *stddev* is 0."""
    if stddev <= 0:
        return max(1, round(mean))
    for attempt in range(_REDRAWS):
        drawn = mean + stddev * normal(seed, f"{stream}.{attempt}", index)
        if drawn > 0:
            return max(1, round(drawn))
    return 1
