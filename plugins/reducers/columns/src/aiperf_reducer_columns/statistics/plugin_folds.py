"""Folds of plugins, for each phase, time slice, URL and group of their metrics; one that fails costs its metric alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from aiperf.sdk.metric import Metric, PluginFold
from aiperf.sdk.summary import STATISTICS, Interval
from msgspec import Struct

from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.described import displayed
from aiperf_reducer_columns.statistics.fold import NOWHERE

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints

_Key: TypeAlias = tuple[int, str, int, str]
"""Phase, grouping ("" of the whole phase), group, tag."""


class FoldState(Struct, frozen=True):
    """A fold of one reducer.  grouping: "" for the whole phase, whose group is 0.  count: number of values."""

    phase: int
    grouping: str
    group: int
    tag: str
    count: int
    state: bytes


def own_folds(catalogue: Catalogue) -> dict[str, type[PluginFold]]:
    """The metrics that have a fold of their own, by tag."""
    metrics = ((tag, metric) for tag, metric in catalogue.metrics.items() if isinstance(metric, Metric))
    return {tag: metric.fold for tag, metric in metrics if isinstance(metric.fold, type)}


class PluginFolds:
    """The folds of one reducer.  *off*: metrics that failed, with a sentence on each; a fold that fails is added."""

    def __init__(self, catalogue: Catalogue, off: dict[str, str]) -> None:
        self._catalogue, self._off = catalogue, off
        self.kinds = own_folds(catalogue)
        self._folds: dict[_Key, PluginFold] = {}
        self._counts: dict[_Key, int] = {}

    def add(self, phase: int, tag: str, values: Floats, grouping: str = "", groups: Ints | None = None) -> None:
        """Add values with their groups; those that aren't finite, or are NOWHERE, are absent."""
        if tag in self._off:
            return
        with self._catalogue.isolated(tag, partial(self._off.__setitem__, tag)):
            for group, part in _parts(values, groups):
                key = phase, grouping, group, tag
                if key not in self._folds:
                    self._folds[key], self._counts[key] = self.kinds[tag](), 0
                self._folds[key].add(part)
                self._counts[key] += len(part)

    def taken(self) -> list[FoldState]:
        """:meth:`dump`, and begin anew."""
        states = self.dump() if self._folds else []
        self._folds, self._counts = {}, {}
        return states

    def drop(self, phase: int, grouping: str, groups: Iterable[int]) -> None:
        """Forget the folds of these groups."""
        for group in groups:
            for tag in self.kinds:
                self._folds.pop((phase, grouping, group, tag), None)
                self._counts.pop((phase, grouping, group, tag), None)

    def dump(self) -> list[FoldState]:
        states = []
        for key, fold in self._folds.items():
            tag = key[-1]
            if tag not in self._off:
                with self._catalogue.isolated(tag, partial(self._off.__setitem__, tag)):
                    states.append(FoldState(*key, self._counts[key], memoryview(fold.dump()).tobytes()))
        return [state for state in states if state.tag not in self._off]


def _parts(values: Floats, groups: Ints | None) -> Iterator[tuple[int, Floats]]:
    """The finite values of each group; all are of group 0 where there are no groups."""
    known = np.isfinite(values)
    if groups is None:
        groups = np.zeros(len(values), dtype=np.int64)
    known &= groups != NOWHERE
    order = np.argsort(groups[known], kind="stable")
    groups, values = groups[known][order], values[known][order]
    for begin, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
        if end > begin:
            yield int(groups[begin]), values[begin:end]


def _checked(interval: Interval) -> Interval:
    if not isinstance(interval, Interval):
        raise TypeError(f"its fold's interval is {type(interval).__name__}, not Interval")
    low, high, level = float(interval.low), float(interval.high), float(interval.level)
    if not (np.isfinite((low, high)).all() and low <= high and 0 < level < 1):
        raise ValueError(f"its fold's interval from {low:g} to {high:g} at the level {level:g} is impossible")
    return Interval(low, high, level)


class FoldResult:
    """The result of a plugin's fold; answers like :class:`aiperf_reducer_columns.statistics.fold.Merged`.

    Raises:
        TypeError, ValueError: It has a statistic that no file has, or an impossible interval.
    """

    listed = False

    def __init__(
        self, result: float | Mapping[str, float] | None, count: int, counts: Mapping[str, int] | None = None,
        interval: Interval | None = None,
    ) -> None:  # fmt: skip
        self._interval = None if interval is None else _checked(interval)
        self.count, self.counts = count, {str(name): int(number) for name, number in (counts or {}).items()}
        stats = {} if result is None else result if isinstance(result, Mapping) else {"avg": result}
        self._stats = {name: float(value) for name, value in stats.items()}
        if unknown := self._stats.keys() - {*STATISTICS, "count"}:
            raise ValueError(f"its fold's result has {min(unknown)!r}, which is not in STATISTICS")

    @property
    def value(self) -> float | None:
        return self._stats.get("avg")

    def interval(self, scale: float) -> Interval | None:
        """The interval in the display unit."""
        known = self._interval
        return None if known is None else Interval(displayed(known.low, scale), displayed(known.high, scale), known.level)

    def sum(self) -> float | None:
        return self._stats.get("sum")

    def least(self) -> float | None:
        return self._stats.get("min")

    def most(self) -> float | None:
        return self._stats.get("max")

    def statistics(self, scale: float) -> dict[str, float] | None:
        shown = {name: value if name == "count" else displayed(value, scale) for name, value in self._stats.items()}
        return shown or None

    def bounds(self, scale: float) -> list[dict[str, float]]:
        return []

    def adjusted(self, failed: int, scale: float) -> dict[str, float] | None:
        return None


class MergedFolds:
    """Folds of several reducers, merged.  *off*: metrics that failed, with a sentence on each."""

    def __init__(self, catalogue: Catalogue, states: Iterable[FoldState]) -> None:
        self._catalogue, self._kinds = catalogue, own_folds(catalogue)
        self._states: dict[tuple[int, str], dict[str, list[FoldState]]] = {}
        for state in states:
            if state.tag in self._kinds:
                self._states.setdefault((state.phase, state.grouping), {}).setdefault(state.tag, []).append(state)
        self.off: dict[str, str] = {}

    def results(self, phase: int, grouping: str = "", last: int = 0) -> dict[int, dict[str, FoldResult]]:
        """By group and tag; a group beyond 0 and *last* counts in the nearest."""
        results: dict[int, dict[str, FoldResult]] = {}
        for tag, states in self._states.get((phase, grouping), {}).items():
            if tag in self.off:
                continue
            with self._catalogue.isolated(tag, partial(self.off.__setitem__, tag)):
                for group, result in self._merged(tag, states, last).items():
                    results.setdefault(group, {})[tag] = result
        return results

    def _merged(self, tag: str, states: list[FoldState], last: int) -> dict[int, FoldResult]:
        folds: dict[int, PluginFold] = {}
        counts: dict[int, int] = {}
        for state in states:
            group, fold = min(max(state.group, 0), last), self._kinds[tag].load(state.state)
            if group in folds:
                folds[group].merge(fold)
            else:
                folds[group] = fold
            counts[group] = counts.get(group, 0) + state.count
        return {
            group: FoldResult(fold.result(), counts[group], fold.counts(), fold.interval()) for group, fold in folds.items()
        }
