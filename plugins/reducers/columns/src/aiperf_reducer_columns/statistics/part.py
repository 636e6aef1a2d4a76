"""Statistics of a part of a metric's values: of a time slice, or of one URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiperf_reducer_columns.statistics.described import PERCENTILES, Adjusted, adjusted, extent, sides_of, statistics
from aiperf_reducer_columns.statistics.exact_sum import exactly
from aiperf_reducer_columns.statistics.fold import Buckets

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats


def _extent(side: Floats | Buckets, scale: float, percentiles: Sequence[float]) -> dict[str, float]:
    return side.extent(scale, percentiles) if isinstance(side, Buckets) else extent(side, scale, percentiles)


class Part:
    """Statistics of a part of one metric's values, computed at once to free the values; answers like ``Merged``."""

    def __init__(
        self, values: Floats | Buckets, scale: float, failed: int,
        bounds: tuple[Floats | Buckets, Floats | Buckets, float] | None = None, *, listed: bool = False,
        percentiles: Sequence[float] = PERCENTILES, kept: bool = False,
    ) -> None:  # fmt: skip
        """*values*: ascending, or as buckets; not empty.  *kept*: they are read again.

        *failed*: number of further, infinite values for ``adjusted``.

        *bounds*: as those of :class:`~aiperf_reducer_columns.statistics.fold.Merged`.  *listed*: they are elements of lists.
        """
        self.listed = listed
        self._adjusted: Adjusted | None = None
        if isinstance(values, Buckets):
            self.count, self._sum, self._ends = values.count, float(values.sum), (values.low, values.high)
            self._statistics = values.statistics(scale, percentiles)
        else:
            self.count, self._sum = len(values), float(exactly(values))
            self._ends = float(values[0]), float(values[-1])
            self._statistics = statistics(values, scale, percentiles)
            if failed:
                exact = [] if bounds is None else [side for side in bounds[:2] if not isinstance(side, Buckets)]
                every = (values, *exact)
                worse, *sides = [adjusted(each.item, len(each), failed, scale, percentiles) for each in every]
                self._adjusted = worse, sides
        self._kept = [values, *(bounds or ())[:2]] if kept else []
        self._sides: list[dict[str, float]] = []
        if bounds is not None:
            sides = [_extent(side, scale, percentiles) for side in bounds[:2]]
            self._sides = sides_of(self._sum, bounds[2], self.count, sides, scale)

    def sum(self) -> float | None:
        return self._sum

    def least(self) -> float | None:
        return self._ends[0]

    def most(self) -> float | None:
        return self._ends[1]

    def statistics(self, scale: float) -> dict[str, float] | None:
        return self._statistics

    def bounds(self, scale: float) -> list[dict[str, float]]:
        return self._sides

    def side(self, number: int | None) -> Floats | None:
        """The values, as ``Merged.side`` gives them; None where they are not kept."""
        found = self._kept[number + 1 if number is not None and len(self._kept) > 1 else 0] if self._kept else None
        return None if found is None or isinstance(found, Buckets) else found.copy()

    def adjusted(self, failed: int, scale: float) -> Adjusted | None:
        return self._adjusted
