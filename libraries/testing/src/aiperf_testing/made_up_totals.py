"""Totals of a made-up run, for the contract of metrics of runs."""

from __future__ import annotations

import numpy as np
from aiperf.sdk.columns import Floats
from aiperf.sdk.summary import STATISTICS, SeriesSummary


class Known:
    """Totals of a made-up run in which every metric has the same *number*; None knows no value.

    *asked*: the tags that were read.
    """

    def __init__(self, number: float | None) -> None:
        self.duration_s = self.window_s = number
        self.valid = self.failed = int(number or 0)
        self.concurrency = None if number is None else int(number)
        self.asked: set[str] = set()
        self._number = number

    def value(self, tag: str) -> float | None:
        self.asked.add(tag)
        return self._number

    def sum(self, tag: str) -> float | None:
        return self.value(tag)

    def count(self, tag: str) -> int:
        return int(self.value(tag) or 0)

    def statistic(self, tag: str, name: str) -> float | None:
        return self.value(tag)

    def values(self, tag: str) -> Floats | None:
        number = self.value(tag)
        return None if number is None else np.array([number])

    def series(self, source: str, name: str, **labels: str) -> list[SeriesSummary]:
        if self._number is None:
            return []
        stats = dict.fromkeys((*STATISTICS, "count", "total", "rate"), self._number)
        return [SeriesSummary(source, 0, name, "gauge", "", labels, "", stats)]
