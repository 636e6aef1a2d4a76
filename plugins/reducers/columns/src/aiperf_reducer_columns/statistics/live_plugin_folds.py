"""Folds of plugins while a run goes on: all values of a phase, and those of the last seconds."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from aiperf_reducer_columns.statistics.plugin_folds import FoldResult, FoldState, MergedFolds, own_folds

if TYPE_CHECKING:
    from aiperf.sdk.metric import PluginFold

    from aiperf_reducer_columns.statistics.catalogue import Catalogue


class LivePluginFolds:
    """The folds of one phase; one that fails costs its metric alone."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self._kinds = catalogue, own_folds(catalogue)
        self._totals: dict[str, tuple[PluginFold, int]] = {}
        self._recent: deque[tuple[float, FoldState]] = deque()
        self._off: dict[str, str] = {}

    def add(self, state: FoldState, at_s: float) -> None:
        """Take a state of a whole phase: of values that no other state has."""
        tag = state.tag
        if tag in self._off:
            return
        with self._catalogue.isolated(tag, partial(self._off.__setitem__, tag)):
            fold = self._kinds[tag].load(state.state)
            if tag not in self._totals:
                self._totals[tag] = fold, state.count
            else:
                total, count = self._totals[tag]
                total.merge(fold)
                self._totals[tag] = total, count + state.count
            self._recent.append((at_s, state))

    def results(self, begun_s: float) -> tuple[dict[str, FoldResult], dict[str, FoldResult]]:
        """By tag, of all values, and of those that came behind *begun_s*."""
        while self._recent and self._recent[0][0] <= begun_s:
            self._recent.popleft()
        so_far: dict[str, FoldResult] = {}
        for tag, (fold, count) in self._totals.items():
            if tag not in self._off:
                with self._catalogue.isolated(tag, partial(self._off.__setitem__, tag)):
                    so_far[tag] = FoldResult(fold.result(), count, fold.counts(), fold.interval())
        states = [state for _, state in self._recent if state.tag in so_far]
        recent = MergedFolds(self._catalogue, states).results(states[0].phase).get(0, {}) if states else {}
        return so_far, recent
