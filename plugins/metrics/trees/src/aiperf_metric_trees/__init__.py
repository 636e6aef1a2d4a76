"""Metrics of conversations that start others, and the interactivity by which agents' servers are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiperf import Analysis, RawValues, Result

from aiperf_metric_trees.gathering import COLUMNS, trees_of
from aiperf_metric_trees.requests import InteractivityP75, InteractivityP90, LatencyPerToken, StartLag
from aiperf_metric_trees.windows import Windows


class TreeMetrics(Analysis):
    """Trees as a whole, by what their requests waited for; absent where no conversation starts others.

    Distributions are of whole trees: begun and ended in the phase, all requests good.  The others are counted apart.
    """

    tag = "agent_trees"
    title = "Trees"
    keeps = COLUMNS

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        found = Windows(windows, kept.percentiles)
        for tree in trees_of(kept):
            found.take(tree)
        return found.results()


__all__ = ["InteractivityP75", "InteractivityP90", "LatencyPerToken", "StartLag", "TreeMetrics"]
