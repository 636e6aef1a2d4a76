"""Names, units and places of the results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from aiperf import Result
from aiperf.sdk.columns import Floats
from aiperf.sdk.statistics import percentile_name

from aiperf_metric_trees.prefixes import AGES, SHOWN

GROUP = "Trees"
_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_NS_PER_MS, _NS_PER_S = 1e6, 1e9


class _Shown(NamedTuple):
    """unit; scale: of values by which they are divided."""

    title: str
    unit: str
    scale: float = 1.0


DISTRIBUTIONS: Mapping[str, _Shown] = {
    "tree_duration": _Shown("Tree Duration", "sec", _NS_PER_S),
    "tree_critical_path": _Shown("Critical Path of Requests", "sec", _NS_PER_S),
    "tree_critical_path_share": _Shown("Critical Path with Tool Times of Duration", "%"),
    "tree_requests": _Shown("Requests per Tree", "requests"),
    "tree_tokens": _Shown("Tokens per Tree", "tokens"),
    "tree_depth": _Shown("Tree Depth", "count"),
    "tree_width": _Shown("Tree Width", "requests"),
    "tree_join_wait": _Shown("Wait at Joins", "ms", _NS_PER_MS),
    "tree_sibling_spread": _Shown("Slowest Sibling over Median", "ratio"),
    "tree_prefix_hit_observed": _Shown("Prefix Hits Observed per Tree", "%"),
    "tree_prefix_hit_theoretical": _Shown("Prefix Hits Theoretical per Tree", "%"),
    "tree_prefix_hit_lost": _Shown("Theoretical less Observed Hits", "%"),
    **{
        f"tree_ttft_prefix_{age}": _Shown(f"TTFT, Prefix {shown}", "ms", _NS_PER_MS)
        for age, shown in zip(AGES, (SHOWN[0].title(), *(f"sent {age} ago" for age in SHOWN[1:])), strict=True)
    },
}
"""By tag, in the order of the console."""


def distribution(tag: str, values: Floats, percentiles: Sequence[float]) -> Result:
    """The statistics of values in their base unit."""
    shown, ordered = DISTRIBUTIONS[tag], np.sort(values) / DISTRIBUTIONS[tag].scale
    asked = sorted({*_PERCENTILES, *percentiles})
    stats = {
        "avg": math.fsum(ordered) / len(ordered),
        "min": float(ordered[0]),
        "max": float(ordered[-1]),
        "sum": math.fsum(ordered),
        **dict(zip(map(percentile_name, asked), np.percentile(ordered, asked).tolist(), strict=True)),
        "std": float(np.std(ordered)),
        "count": float(len(ordered)),
    }
    return Result(tag, shown.title, shown.unit, stats, "", GROUP, list(DISTRIBUTIONS).index(tag))


def rate(per_hour: float) -> Result:
    return Result("trees_per_hour", "Trees per Hour", "trees/hour", {"avg": per_hour}, "", GROUP, len(DISTRIBUTIONS))


def counts(tag: str, title: str, found: Mapping[str, int], *, shown: bool) -> Result:
    """Counts by name; those that are *shown* have a line below the table."""
    return Result(tag, title, "count", {}, "", GROUP, len(DISTRIBUTIONS) + 1 if shown else None, counts=dict(found))
