"""The values of one metric, as the lines of a file have them, and the statistics that follow from them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from aiperf.sdk.statistics import percentile_name
from msgspec import Struct

from aiperf_command_validate.choice import USUAL

KEPT = 4_000_000
"""Elements of lists that a run keeps exactly; beyond them its percentiles are of buckets, and are not recomputed."""


class Extent(Struct, frozen=True):
    """*magnitude*: the sum without signs."""

    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    magnitude: float = 0.0


class Values:
    """The values of one metric, in its display unit.

    slack: how far the sum may be off, because values are estimates.  units: as the lines name them.  listed: whether requests
    have lists of values.  percentiles: those of its statistics.
    """

    def __init__(self, *, listed: bool = False, percentiles: Sequence[float] = USUAL) -> None:
        self.slack, self._percentiles = 0.0, percentiles
        self._places, self._least, self._most = array("q"), array("d"), array("d")
        self.count = 0
        self.units: set[str] = set()
        self.listed = listed
        self._kept = array("d")
        self._groups = array("i")
        self._left = Extent()

    def add(self, values: Sequence[float], group: int = -1) -> None:
        """Add a request's value, or its list.  *group*: the number of a time slice, -1 is none; lists have none."""
        self._kept.extend(values)
        self.count += len(values)
        if not self.listed:
            self._groups.append(group)
        elif len(self._kept) > KEPT:
            self._left, self._kept = self.extent(), array("d")

    def extent(self) -> Extent:
        """Extremes and sums of all values."""
        values, left = self._values(), self._left
        if not len(values):
            return left
        return Extent(
            min(left.low, float(values.min())), max(left.high, float(values.max())), left.total + float(values.sum()),
            left.magnitude + float(np.abs(values).sum()),
        )  # fmt: skip

    def estimate(self, intervals: Any, count: int) -> bool:
        """Take the *intervals* of the *count* values that are added next, for one request; False where they don't fit."""
        try:
            most = array("d", intervals["upper"])
            least = array("d", intervals.get("lower") or repeat(0.0, len(most)))
            places = array("q", intervals.get("at") or range(count))
            slack = intervals.get("slack", 0.0) + 0.0
        except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError):
            return False
        if not len(places) == len(least) == len(most) or not 0 <= min(places, default=0) <= max(places, default=0) < count:
            return False
        self._places.extend(self.count + place for place in places)
        self._least.extend(least)
        self._most.extend(most)
        self.slack += slack
        return True

    @property
    def estimates(self) -> int:
        """Values that have an interval."""
        return len(self._places)

    def like(self, other: Values) -> bool:
        """Whether they are the same values, in any order; where not all were kept, as far as counts, sums and extremes tell."""
        if self.exact and other.exact:
            return bool(np.array_equal(np.sort(self._values()), np.sort(other._values())))
        mine, theirs = self.extent(), other.extent()
        close = math.isclose(mine.total, theirs.total, rel_tol=0, abs_tol=1e-9 * max(mine.magnitude, 1e-9))
        return close and (self.count, mine.low, mine.high) == (other.count, theirs.low, theirs.high)

    @property
    def exact(self) -> bool:
        """Whether every value was kept."""
        return len(self._kept) == self.count

    def statistics(self) -> dict[str, float]:
        """Every statistic; empty where there are no values, or not all were kept."""
        return statistics(self._values(), self._percentiles) if self.exact else {}

    def bounds(self) -> list[dict[str, float]]:
        """Least and greatest statistics; empty where no value is an estimate, or not all were kept."""
        if not self._places or not self.exact:
            return []
        low, high = self._replaced()
        return _sides(self._values(), low, high, self.slack, self._percentiles)

    def by_group(self) -> dict[int, tuple[dict[str, float], list[dict[str, float]]]]:
        """The statistics of each group, with least and greatest ones where some of its values are estimates."""
        groups, values = np.frombuffer(self._groups, dtype=np.int32), self._values()
        low, high = self._replaced()
        order = np.argsort(groups, kind="stable")
        present, begins = np.unique(groups[order], return_index=True)
        cut = [np.split(part[order], begins[1:]) if len(present) else [] for part in (values, low, high)]
        found: dict[int, tuple[dict[str, float], list[dict[str, float]]]] = {}
        for group, known, least, most in zip(present.tolist(), *cut, strict=True):
            slack = float(np.maximum(known - least, most - known).sum())
            sides = _sides(known, least, most, slack, self._percentiles) if (least < most).any() else []
            found[group] = statistics(known, self._percentiles), sides
        return found

    def adjusted(self, failed: int) -> dict[str, float]:
        """Statistics in which *failed* more requests took infinitely long: finite ones, percentiles of the nearest rank."""
        return self._adjusted(self._values(), failed)

    def adjusted_bounds(self, failed: int) -> list[dict[str, float]]:
        """Least and greatest of the same; empty where no value is an estimate."""
        sides = [self._adjusted(side, failed) for side in self._replaced()] if self._places and self.exact else []
        return [{name: value for name, value in side.items() if name != "count"} for side in sides]

    def _adjusted(self, values: Any, failed: int) -> dict[str, float]:
        ordered = np.sort(values)
        count = len(ordered) + failed
        ranks = {percentile_name(q): round(q / 100 * (count - 1)) for q in self._percentiles}
        known = {name: float(ordered[rank]) for name, rank in ranks.items() if rank < len(ordered)}
        return known | {"min": float(ordered[0]), "count": count} if len(ordered) and self.exact else {}

    def _values(self) -> Any:
        return np.frombuffer(self._kept, dtype=np.float64)

    def _replaced(self) -> tuple[Any, Any]:
        """The values with the lower bounds of estimates in their place, and with the upper ones."""
        low, high, places = self._values().copy(), self._values().copy(), np.frombuffer(self._places, dtype=np.int64)
        low[places], high[places] = np.frombuffer(self._least, dtype=np.float64), np.frombuffer(self._most, dtype=np.float64)
        return low, high


def _sides(values: Any, low: Any, high: Any, slack: float, percentiles: Sequence[float]) -> list[dict[str, float]]:
    """Both bounds of every statistic but the deviation; the sum may be off by *slack*, and lies between those of the bounds."""
    total = math.fsum(values.tolist())
    sums = max(math.fsum(low.tolist()), total - slack), min(math.fsum(high.tolist()), total + slack)
    both = zip((low, high), sums, strict=True)
    sides = (statistics(side, percentiles) | {"avg": most / len(values), "sum": most} for side, most in both)
    return [{name: value for name, value in side.items() if name not in ("std", "count")} for side in sides]


def statistics(values: Any, percentiles: Sequence[float] = USUAL) -> dict[str, float]:
    """Every statistic of an array: linear percentiles, population standard deviation.  Empty where it is."""
    if not len(values):
        return {}
    known = {"avg": float(values.mean()), "min": float(values.min()), "max": float(values.max())}
    known |= {"sum": math.fsum(values.tolist()), "std": float(values.std()), "count": len(values)}
    return known | dict(zip(map(percentile_name, percentiles), np.percentile(values, percentiles).tolist(), strict=True))
