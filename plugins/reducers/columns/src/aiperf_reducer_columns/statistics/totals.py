"""Folded values to results: statistics of each metric, and metrics derived from them, for a phase or a part of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from aiperf.sdk.metric import Aggregation, Analysis, Metric, MetricDeclaration, RunDistribution, RunMetric
from aiperf.sdk.plan import OutputPlan
from aiperf.sdk.raw_values import RawValues
from aiperf.sdk.statistics import percentile_name
from aiperf.sdk.summary import Result, SeriesSummary
from aiperf.sdk.trees import PlannedTree
from msgspec.structs import replace

from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.described import PERCENTILES, displayed, extent, statistics
from aiperf_reducer_columns.statistics.fold import ESTIMATE, HIGH, LOW, SLACK, Merged, Samples
from aiperf_reducer_columns.statistics.grouped import MergedGroups
from aiperf_reducer_columns.statistics.live_folds import FoldView
from aiperf_reducer_columns.statistics.part import Part
from aiperf_reducer_columns.statistics.phase_counts import Tally
from aiperf_reducer_columns.statistics.pipeline import CENSORED, SEEN
from aiperf_reducer_columns.statistics.plugin_folds import FoldResult

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

_ONE_NUMBER = (Aggregation.SUM, Aggregation.MIN, Aggregation.MAX)
Sides: TypeAlias = tuple[dict[str, float], dict[str, float]]
"""Lower and upper bounds of statistics, both empty where all values are known."""
_LAST = 1_000_000
"""Place on the console behind every row with an order of its own."""


class PhaseTotals:
    """The folds of a phase or a part of it: the ``Totals`` that run metrics read.

    sums: by tag, sums of a part that differ from those of its folds; zero for a metric that has values only in other parts.
    """

    def __init__(
        self, catalogue: Catalogue, folds: Mapping[str, Merged | Part | FoldResult | FoldView], *,
        duration_s: float | None, window_s: float | None, valid: int, failed: int,
        sums: Mapping[str, float] | None = None, analyses: Mapping[str, Result] | None = None,
        telemetry: Callable[[], Iterable[SeriesSummary]] | None = None, concurrency: int | None = None,
        percentiles: Sequence[float] = PERCENTILES,
    ) -> None:  # fmt: skip
        """*analyses*: their results, by tag.  *telemetry*: gives the series of this part; None where it has none.
        *percentiles*: of the statistics of derived values."""
        self._percentiles = percentiles
        self._analyses, self._telemetry = analyses or {}, telemetry
        self._unseen: list[str] = []  # telemetry series that the metric at hand asked for in vain
        self.duration_s, self.window_s, self.valid, self.failed = duration_s, window_s, valid, failed
        self.concurrency = concurrency
        self._catalogue, self._folds, self._sums = catalogue, folds, sums or {}
        self._derived: dict[str, float] = {}
        self._shown: dict[str, Mapping[str, float]] = {}
        self._sides: dict[str, Sides] = {}
        self._bounded: list[str] = []
        self.warnings: list[str] = []

    def sum(self, tag: str) -> float | None:
        if tag in self._sums:
            return self._sums[tag]
        return self._folds[tag].sum() if tag in self._folds else None

    def count(self, tag: str) -> int:
        return self._folds[tag].count if tag in self._folds else 0

    def value(self, tag: str) -> float | None:
        if tag in self._derived:
            return self._derived[tag]
        metric, fold = self._catalogue.metrics.get(tag), self._folds.get(tag)
        if not isinstance(metric, Metric):
            return self._analyses[tag].stats.get("avg") if tag in self._analyses else None
        if isinstance(fold, FoldResult):
            return fold.value
        if metric.fold is Aggregation.SUM:
            return self.sum(tag)
        if fold is None:
            return None
        if metric.fold is Aggregation.DISTRIBUTION:
            total = fold.sum()
            return None if total is None else total / fold.count
        return fold.least() if metric.fold is Aggregation.MIN else fold.most()

    def statistic(self, tag: str, name: str) -> float | None:
        if tag in self._analyses:
            return self._analyses[tag].stats.get(name)
        return self._shown.get(tag, {}).get(name)

    def values(self, tag: str) -> Floats | None:
        return self.side(tag, None)

    def side(self, tag: str, number: int | None) -> Floats | None:
        """The values of a metric; *number*: with lower (0) or upper (1) bounds in the place of estimates."""
        fold = self._folds.get(tag)
        return fold.side(number) if isinstance(fold, Merged | Part) else None

    def series(self, source: str, name: str, **labels: str) -> list[SeriesSummary]:
        known = [each for each in self._telemetry() if each.source == source] if self._telemetry is not None else []
        series = [each for each in known if each.name == name and labels.items() <= each.labels.items()]
        if not series and known:
            self._unseen.append(f"{name} of {source}" + "".join(f", {key}={value}" for key, value in labels.items()))
        return series

    def statistics_of(self, tag: str) -> dict[str, float] | None:
        """The statistics of a metric with values of its own, in the display unit; None without any."""
        return self._statistics(tag, self._catalogue.metrics[tag])[0] if tag in self._folds else None

    def results(self) -> dict[str, Result]:
        """Every metric's result, in the display unit; those without a value are absent."""
        results: dict[str, Result] = {}
        for tag, metric in self._catalogue.metrics.items():
            if isinstance(metric, Analysis):
                continue
            stats, (lower, upper) = self._statistics(tag, metric)
            self._keep(tag, stats or {}, (lower, upper))
            own = fold if isinstance(fold := self._folds.get(tag), FoldResult) else None
            counts, interval = ({}, None) if own is None else (own.counts, own.interval(metric.scale))
            if metric.hidden or (stats is None and not counts) or not all(map(math.isfinite, (stats or {}).values())):
                continue
            results[tag] = replace(_result(metric, stats or {}), lower=lower, upper=upper, counts=counts, interval=interval)
            if self.failed and isinstance(metric, Metric) and metric.adjusted:
                adjusted = self._folds[tag].adjusted(self.failed, metric.scale)
                if adjusted is not None:
                    results[f"adj_{tag}"] = self._adjusted(metric, *adjusted)
        return results

    def _adjusted(self, metric: Metric, stats: dict[str, float], sides: Sequence[dict[str, float]]) -> Result:
        tag = f"adj_{metric.tag}"
        lower, upper = ({name: side[name] for name in stats if name in side and name != "count"} for side in sides or ({}, {}))
        self._keep(tag, stats, (lower, upper))
        title, order = f"{metric.title} (error-adjusted)", _LAST + (metric.order or 0)
        return Result(tag, title, metric.shown.value, stats, "", metric.group, order, lower, upper)

    def _keep(self, tag: str, stats: Mapping[str, float], sides: Sides) -> None:
        self._shown[tag], self._sides[tag] = stats, sides
        if sides[0]:
            self._bounded.append(tag)

    def _statistics(self, tag: str, metric: MetricDeclaration) -> tuple[dict[str, float] | None, Sides]:
        """The statistics of a metric with their bounds, which are empty where all its values are known."""
        if isinstance(metric, RunDistribution):
            return self._distribution(metric)
        fold, sides = self._folds.get(tag), list[dict[str, float]]()
        if not isinstance(metric, Metric) or metric.fold in _ONE_NUMBER:
            stats = self._number(tag, metric)
            if isinstance(metric, RunMetric):
                return stats, self._ends(metric, stats)
            if fold is not None and stats is not None and isinstance(metric, Metric) and tag not in self._sums:
                which = {Aggregation.SUM: "sum", Aggregation.MIN: "min"}.get(Aggregation(metric.fold), "max")
                sides = [{"avg": side[which]} for side in fold.bounds(metric.scale)]
        elif (stats := None if fold is None else fold.statistics(metric.scale)) and fold is not None:
            sides = fold.bounds(metric.scale)
            if sides and fold.listed:  # estimates that spread a sum evenly say nothing of its greatest part
                lower, upper = sides
                stats |= {name: (low + upper[name]) / 2 for name, low in lower.items() if name not in ("avg", "sum")}
        return stats, (sides[0], sides[1]) if sides else ({}, {})

    def _ends(self, metric: RunMetric, stats: dict[str, float] | None) -> Sides:
        """Bounds of a metric of the run, where what it rises or falls with has bounds."""
        known = {tag: self._sides[tag] for tag in self._bounded}
        found: list[dict[str, float]] = []
        for side in (0, 1):
            at = {tag: known[tag][side] for tag in _with_adjusted(metric.rises) if tag in known}
            at |= {tag: known[tag][1 - side] for tag in _with_adjusted(metric.falls) if tag in known}
            value = None
            if at and stats is not None:
                with self._catalogue.isolated(metric.tag, self.warnings.append):
                    value = metric.number(AtEnd(self, at, self._catalogue))
            if value is None or not math.isfinite(value):
                return {}, {}
            found.append({"avg": displayed(float(value), metric.scale)})
        return (found[0], found[1]) if found[0] != found[1] else ({}, {})

    def _distribution(self, metric: RunDistribution) -> tuple[dict[str, float] | None, Sides]:
        self._unseen = []
        known: list[Floats] = []
        bounded = not set(self._bounded).isdisjoint(metric.reads)
        runs: list[PhaseTotals | AtEnd] = [self]
        runs += [AtEnd(self, {}, self._catalogue, side) for side in (0, 1)] if bounded else []
        with self._catalogue.isolated(metric.tag, self.warnings.append):
            known = [np.asarray(found, dtype=np.float64) for run in runs if (found := metric.values(run)) is not None]
        if len(known) < len(runs) or any(not len(found) or not np.isfinite(found).all() for found in known):
            self._say_unseen(metric.tag)
            return None, ({}, {})
        stats = statistics(known[0], metric.scale, self._percentiles)
        self._derived[metric.tag] = float(known[0].mean())
        sides = [extent(found, metric.scale, self._percentiles) for found in known[1:]]
        sides = [each | {"avg": each["sum"] / stats["count"]} for each in sides]
        return stats, (sides[0], sides[1]) if sides and sides[0] != sides[1] else ({}, {})

    def _say_unseen(self, tag: str) -> None:
        if self._unseen:
            unseen, owner = " and ".join(self._unseen), self._catalogue.owner(tag)
            self.warnings.append(f"metric {tag} of {owner} is absent: there is no telemetry series {unseen}")

    def _number(self, tag: str, metric: MetricDeclaration) -> dict[str, float] | None:
        """The only statistic of a metric with one number."""
        if isinstance(metric, RunMetric):
            self._unseen = []
            with self._catalogue.isolated(tag, self.warnings.append):
                value = metric.number(self)
                if value is not None and math.isfinite(number := float(value)):
                    self._derived[tag] = number
                else:
                    self._say_unseen(tag)
        value = self.value(tag)
        return None if value is None else {"avg": displayed(value, metric.scale)}


class AtEnd:
    """The totals with some results, by tag, at one end of their bounds; *at* is in display units.  side: the end of values."""

    def __init__(
        self, totals: PhaseTotals, at: Mapping[str, Mapping[str, float]], catalogue: Catalogue, side: int | None = None
    ) -> None:
        self._totals, self._at, self._catalogue, self._side = totals, at, catalogue, side
        self.duration_s, self.window_s, self.valid, self.failed = (
            totals.duration_s, totals.window_s, totals.valid, totals.failed,
        )  # fmt: skip
        self.count, self.series, self.concurrency = totals.count, totals.series, totals.concurrency

    def value(self, tag: str) -> float | None:
        return self._end(tag, "avg", self._totals.value)

    def sum(self, tag: str) -> float | None:
        return self._end(tag, "sum", self._totals.sum)

    def statistic(self, tag: str, name: str) -> float | None:
        return self._at.get(tag, {}).get(name, self._totals.statistic(tag, name))

    def values(self, tag: str) -> Floats | None:
        return self._totals.side(tag, self._side)

    def _end(self, tag: str, name: str, known: Callable[[str], float | None]) -> float | None:
        shown = self._at.get(tag, {}).get(name)
        return known(tag) if shown is None else shown / self._catalogue.metrics[tag].scale


def _with_adjusted(tags: Iterable[str]) -> Iterator[str]:
    """The tags, and those of the results in which failed requests count."""
    for tag in tags:
        yield from (tag, f"adj_{tag}")


def _result(metric: MetricDeclaration, stats: dict[str, float]) -> Result:
    return Result(metric.tag, metric.title, metric.shown.value, stats, metric.short, metric.group, metric.order)


class Analyses:
    """Results of analyses, for phases and parts of them.

    *states*: (phase, tag, state) of the raw values of each reducer.  *tree*: what an entry of the data set plans.
    """

    def __init__(
        self, catalogue: Catalogue, states: Iterable[tuple[int, str, bytes]], output: OutputPlan,
        tree: Callable[[int], PlannedTree] | None = None,
    ) -> None:  # fmt: skip
        self._catalogue, self._percentiles, self._tree = catalogue, output.asked_percentiles, tree
        self._states: dict[int, dict[str, list[bytes]]] = {}
        for phase, tag, state in states:
            self._states.setdefault(phase, {}).setdefault(tag, []).append(state)
        self.warnings: list[str] = []

    def results(self, phase: int, windows: Sequence[tuple[float, float]]) -> list[dict[str, Result]]:
        """The results of each part of a phase; *windows*: begin and end of each, in ns since the run's start."""
        by_window: list[dict[str, Result]] = [{} for _ in windows]
        for tag, states in self._states.get(phase, {}).items():
            analysis = self._catalogue.metrics.get(tag)
            if not isinstance(analysis, Analysis):
                continue
            kept = RawValues(states, self._percentiles, self._tree)
            with self._catalogue.isolated(tag, self.warnings.append):
                for window, results in zip(by_window, analysis.results(kept, windows), strict=True):
                    window |= {result.tag: result for result in results}
        return by_window


def kaplan_meier(
    known: Floats, censored: Floats, scale: float, asked: Sequence[float] = PERCENTILES
) -> dict[str, float]:
    """Percentiles of ascending durations: *known* ones, and *censored* ones that are only known to be longer.

    The product-limit estimate (Kaplan and Meier 1958): the weight of a censored duration passes to those that lasted longer.
    That is a step function; between its steps the percentiles are interpolated linearly, as plain ones are, so that without
    censored durations they are the plain ones.  Percentiles beyond the last known duration are unknown
    and left out.
    """
    count = len(known) + len(censored)
    if not len(known):
        return {"count": count, "censored": len(censored)}
    # A request that ends at the instant of a cut-off ended before it.
    at_risk = np.arange(len(known), 0, -1) + len(censored) - np.searchsorted(censored, known, side="left")
    ended = count * (1 - np.cumprod(1 - 1 / at_risk))
    ranks = ended - 1  # of each value among all; 0, 1, 2 … where nothing is censored
    percentiles = {}
    for q in asked:
        rank = q / 100 * (count - 1)
        if rank <= ranks[-1] or math.isclose(rank, ranks[-1]):
            percentiles[percentile_name(q)] = displayed(float(np.interp(rank, ranks, known)), scale)
    return percentiles | {"count": count, "censored": len(censored)}


def survival(
    catalogue: Catalogue, folds: Mapping[str, Merged], percentiles: Sequence[float] = PERCENTILES
) -> dict[str, Result]:
    """Durations in which a request cut off in flight counts as lasting at least until then; where there are such requests."""
    results = {}
    for tag, metric in catalogue.metrics.items():
        censored = folds.get(tag + CENSORED)
        if metric.hidden or censored is None or not censored.count:
            continue
        known = [folds[name].values() for name in (tag, tag + SEEN) if name in folds]
        ordered = np.sort(np.concatenate([np.empty(0), *known]))
        results[tag] = _result(metric, kaplan_meier(ordered, censored.values(), metric.scale, percentiles))
    return results


def parts(
    catalogue: Catalogue, merged: MergedGroups, groups: range, seconds: Callable[[int], float | None], *,
    plugin_folds: Mapping[int, Mapping[str, FoldResult]] | None = None, analyses: Sequence[Mapping[str, Result]] = (),
    telemetry: Callable[[int], Iterable[SeriesSummary]] | None = None,
) -> Iterator[tuple[int, Tally, dict[str, Result]]]:  # fmt: skip
    """Each group with its requests and results; *seconds*: the duration of a group, for its rates.

    *plugin_folds*, *analyses*, *telemetry*: of each group, for those that have them.
    """
    folds: dict[int, dict[str, Part | FoldResult]] = {group: {**(plugin_folds or {}).get(group, {})} for group in groups}
    read = {tag for metric in catalogue.metrics.values() if isinstance(metric, RunDistribution) for tag in metric.reads}
    known: dict[str, float] = {}
    arrived: dict[str, dict[int, int]] = {}
    for tag, metric in catalogue.metrics.items():
        if not isinstance(metric, Metric):
            continue
        listed = merged.listed(tag)
        for group, values, bounds in merged.values(tag):
            known[tag] = 0.0
            failed = merged.tally(group).failed if metric.adjusted else 0
            folds[group][tag] = Part(
                values, metric.scale, failed, bounds, listed=listed, percentiles=merged.percentiles, kept=tag in read
            )
        if metric.arriving and (amounts := merged.arrived(tag)):
            arrived[tag] = amounts
    for group in groups:
        tally, folds_here = merged.tally(group), folds.pop(group)
        sums = {tag: zero for tag, zero in known.items() if tag not in folds_here}
        sums |= {tag: float(amounts.get(group, 0)) for tag, amounts in arrived.items() if tag in known}
        totals = PhaseTotals(
            catalogue, folds_here, duration_s=seconds(group), window_s=seconds(group), valid=tally.valid, failed=tally.failed,
            sums=sums, analyses=analyses[group] if analyses else None,
            telemetry=None if telemetry is None else partial(telemetry, group), percentiles=merged.percentiles,
        )  # fmt: skip
        yield group, tally, totals.results()


def merged_folds(
    reducers: Iterable[list[tuple[int, str, Samples]]], percentiles: Sequence[float] = PERCENTILES
) -> dict[int, dict[str, Merged]]:
    """Folds of several reducers, merged, by phase and tag; *percentiles*: of their statistics."""
    parts: dict[int, dict[str, list[Samples]]] = {}
    for folds in reducers:
        for phase, tag, samples in folds:
            parts.setdefault(phase, {}).setdefault(tag, []).append(samples)
    return {phase: {tag: _merged(tags, tag, percentiles) for tag in tags} for phase, tags in parts.items()}


def _merged(folds: dict[str, list[Samples]], tag: str, percentiles: Sequence[float]) -> Merged:
    """The samples of a tag; where some of its values are estimates, these too, and their bounds."""
    known = folds[tag]
    if tag + ESTIMATE not in folds:
        return Merged(known, percentiles=percentiles)
    slack = Merged(folds[tag + SLACK]).sum() or 0.0
    low, high = (Merged(known + folds[tag + side], percentiles=percentiles) for side in (LOW, HIGH))
    return Merged(known + folds[tag + ESTIMATE], bounds=(low, high, slack), percentiles=percentiles)
