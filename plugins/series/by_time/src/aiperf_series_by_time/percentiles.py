"""Exact percentiles of gauges by time."""

from __future__ import annotations

import math

import numpy as np
from aiperf.sdk.columns import Floats, Ints
from aiperf_histograms import PERCENTILES


def by_time(owners: Ints, values: Floats, times: Ints, count: int) -> Floats:
    """A row for each of PERCENTILES, a column for each of *count* owners; NaN for an owner without values.

    Each is the smallest value that holds for the share of the owner's time; halfway to the next one where it holds for exactly
    that.  owners, values: in ascending order, no pair twice.  times: above 0, in any unit.
    """
    passed = np.concatenate([[0], np.cumsum(times)])
    edges = owners.searchsorted(np.arange(count + 1))
    before, total = passed[edges[:-1]], np.diff(passed[edges])
    known, found = total > 0, np.full((len(PERCENTILES), count), math.nan)
    before, total, last = before[known], total[known], edges[1:][known] - 1
    for row, percent in zip(found, PERCENTILES, strict=True):
        places = passed[1:].searchsorted(before + (total * percent + 99) // 100)
        after = np.where((passed[places + 1] - before) * 100 == total * percent, np.minimum(places + 1, last), places)
        row[known] = (values[places] + values[after]) / 2
    return found
