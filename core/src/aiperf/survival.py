"""Durations of which some are only known to be longer.

A request that was in flight at the cut-off took at least as long as it had lasted; leaving it out would flatter whoever is
slow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from aiperf.fold import PERCENTILES, displayed

if TYPE_CHECKING:
    from aiperf.columns import Floats


def kaplan_meier(seen: Floats, censored: Floats, scale: float) -> dict[str, float]:
    """Percentiles of ascending durations, *censored* ones of which are only known to be longer.

    The product-limit estimate (Kaplan and Meier 1958): the weight of one that is censored passes to those that lasted
    longer.  With none censored these are the plain linear percentiles.  Those beyond the last end that was seen are unknown,
    and left out.
    """
    count = len(seen) + len(censored)
    if not len(seen):
        return {"count": count, "censored": len(censored)}
    # What ends at the instant of a cut-off ended before it.
    at_risk = np.arange(len(seen), 0, -1) + len(censored) - np.searchsorted(censored, seen, side="left")
    ended = count * (1 - np.cumprod(1 - 1 / at_risk))
    ranks = ended - 1  # of each value among all; 0, 1, 2 … where nothing is censored
    found = {}
    for q in PERCENTILES:
        rank = q / 100 * (count - 1)
        if rank <= ranks[-1] or math.isclose(rank, ranks[-1]):
            found[f"p{q}"] = displayed(float(np.interp(rank, ranks, seen)), scale)
    return found | {"count": count, "censored": len(censored)}
