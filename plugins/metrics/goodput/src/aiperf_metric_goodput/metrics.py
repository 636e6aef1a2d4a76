"""The metrics of objectives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from aiperf import Aggregation, Column, Metric, MetricDeclaration, Ragged, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.columns import Bounds
from aiperf.sdk.metric import MetricObjective
from msgspec import Struct

from aiperf_metric_goodput.slos import Slo

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOOD = "good_request_count"
_ORDER = 1000
"""Place of the goodput on the console; metrics with details follow."""


def metrics_of(bounds: Iterable[tuple[Slo, Metric]]) -> list[MetricDeclaration]:
    """The metrics of these objectives.  *bounds*: each objective with the metric that it bounds."""
    objectives = [ServiceObjective(slo, metric) for slo, metric in bounds]
    per_request = [objective for objective in objectives if objective.slo.percentile is None]
    metrics: list[MetricDeclaration] = []
    if per_request:
        metrics += [GoodRequestCount(per_request), GoodRequestFraction(), Goodput()]
        metrics += [FailedAlone(place, per_request) for place in range(len(per_request))]
        metrics += [ObjectiveMet(objective) for objective in per_request]
    for objective in objectives:
        if objective.slo.percentile is not None:
            metrics += [PercentileAttained(objective), PercentileMargin(objective)]
    return metrics


class ServiceObjective(Struct, frozen=True):
    """An objective and the metric that it bounds."""

    slo: Slo
    metric: Metric

    @property
    def title(self) -> str:
        sign = "≥" if self.metric.larger_is_better else "≤"
        of = "" if self.slo.percentile is None else f" {self.slo.percentile}"
        return f"{self.metric.short or self.metric.title}{of} {sign} {self.slo.bound:g} {self.metric.shown.value}"

    def met(self, batch: RecordBatch, *, end: str | None = None) -> NDArray[np.bool_]:
        """Whether each request meets the objective: absent values don't, lists do where all elements do.

        *end*: of estimates, the ``best`` or the ``worst`` value there may be.
        """
        column, ends = batch.column(self.metric.tag), batch.ends(self.metric.tag)
        if end is not None and ends is not None:
            column = ends[(end == "best") is self.metric.larger_is_better]
        if not isinstance(column, Ragged):
            return self.holds(column * self.metric.scale)
        lengths = np.diff(column.offsets)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        broken = np.bincount(owners[~self.holds(column.values * self.metric.scale)], minlength=len(lengths))
        whole: NDArray[np.bool_] = (lengths > 0) & (broken == 0)
        return whole

    def holds(self, shown: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether values in the display unit are within the bound; absent values aren't."""
        return shown >= self.slo.bound if self.metric.larger_is_better else shown <= self.slo.bound


class GoodRequestCount(Metric):
    """Requests that succeeded and met every objective."""

    tag = _GOOD
    title = "Good Request Count"
    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    objective = MetricObjective("all objectives")

    def __init__(self, objectives: Sequence[ServiceObjective]) -> None:
        self.objectives = objectives
        self.needs = tuple(dict.fromkeys(objective.slo.tag for objective in objectives))

    def column(self, batch: RecordBatch) -> Column:
        return _all(objective.met(batch) for objective in self.objectives)

    def bounds(self, batch: RecordBatch) -> Bounds:
        """Whether it is good for certain, and whether it may be."""
        sides = (_all(objective.met(batch, end=end) for objective in self.objectives) for end in ("worst", "best"))
        return Bounds.around(self.column(batch), *sides)


class GoodRequestFraction(RunMetric):
    """Share of good requests among those that ended; failed requests are not good."""

    tag = "good_request_fraction"
    title = "GoodRequestFraction"
    unit = Unit.RATIO
    needs = rises = (_GOOD,)
    larger_is_better = True

    def number(self, run: Totals) -> float | None:
        ended = run.valid + run.failed
        return (run.value(_GOOD) or 0.0) / ended if ended else 0.0


class Goodput(RunMetric):
    """Good requests per second, over the same time as the request throughput."""

    tag = "goodput"
    title = "Goodput"
    unit = Unit.REQUESTS_PER_SECOND
    needs = rises = (_GOOD,)
    order = _ORDER

    def number(self, run: Totals) -> float | None:
        return (run.value(_GOOD) or 0.0) / run.duration_s if run.duration_s else None


class FailedAlone(Metric):
    """Requests that succeeded and missed only this objective: its cost."""

    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    per_record = False

    def __init__(self, place: int, objectives: Sequence[ServiceObjective]) -> None:
        """*place*: index of the objective in *objectives*."""
        self.place, self.objectives = place, objectives
        objective = objectives[place]
        self.tag = f"slo_{objective.slo.tag}_failed_alone"
        self.title = f"Failed Only {objective.title}"
        self.order = _ORDER + 1 + place
        self.needs = tuple(dict.fromkeys(objective.slo.tag for objective in objectives))

    def column(self, batch: RecordBatch) -> Column:
        return self._column(batch, None, None)

    def bounds(self, batch: RecordBatch) -> Bounds:
        sides = (self._column(batch, own, others) for own, others in (("best", "worst"), ("worst", "best")))
        return Bounds.around(self.column(batch), *sides)

    def _column(self, batch: RecordBatch, own: str | None, others: str | None) -> Column:
        met = [objective.met(batch, end=others) for objective in self.objectives]
        met[self.place] = ~self.objectives[self.place].met(batch, end=own)
        return _all(met)


class ObjectiveMet(Metric):
    """Requests that succeeded and met this objective, for live numbers."""

    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    hidden = watched = True
    per_record = False

    def __init__(self, objective: ServiceObjective) -> None:
        slo = objective.slo
        self._objective = objective
        self.tag = f"slo_{slo.tag}_met"
        self.title = f"Met {objective.title}"
        self.needs = (slo.tag,)
        self.objective = MetricObjective(objective.title, slo.tag, slo.bound)

    def column(self, batch: RecordBatch) -> Column:
        return _all([self._objective.met(batch)])


class _OfPercentile(RunMetric):
    """An objective of the run.  Failed requests count as infinitely slow, where the metric has adjusted values."""

    def __init__(self, objective: ServiceObjective, what: str) -> None:
        self.service = objective
        slo = objective.slo
        self.needs = (slo.tag,)
        self.rises, self.falls = ((), self.needs)[:: -1 if objective.metric.larger_is_better else 1]
        self.tag = f"slo_{slo.tag}_{slo.percentile}_{what}"
        self.title = f"{objective.title} {what.capitalize()}"
        self.order: int | None = _ORDER + 50

    def reached(self, run: Totals) -> float | None:
        """The percentile in its display unit."""
        slo = self.service.slo
        assert slo.percentile is not None  # only objectives of the run are passed here
        if run.statistic(f"adj_{slo.tag}", "count") is None:
            return run.statistic(slo.tag, slo.percentile)
        adjusted = run.statistic(f"adj_{slo.tag}", slo.percentile)
        return math.inf if adjusted is None else adjusted


class PercentileAttained(_OfPercentile):
    """1 where the run met the objective, else 0, also without any measurement."""

    unit = Unit.RATIO
    larger_is_better = True

    def __init__(self, objective: ServiceObjective) -> None:
        super().__init__(objective, "attained")

    def number(self, run: Totals) -> float | None:
        reached = self.reached(run)
        return 0.0 if reached is None else float(self.service.holds(np.array([reached]))[0])


class PercentileMargin(_OfPercentile):
    """Distance to the bound; negative where the run missed it.  Absent where the percentile isn't finite."""

    larger_is_better = True

    def __init__(self, objective: ServiceObjective) -> None:
        super().__init__(objective, "margin")
        self.unit = objective.metric.shown

    def number(self, run: Totals) -> float | None:
        reached = self.reached(run)
        if reached is None or math.isinf(reached):
            return None
        room = self.service.slo.bound - reached
        return -room if self.service.metric.larger_is_better else room


def _all(met: Iterable[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """1 where all are true, else 0."""
    good: NDArray[np.float64] = np.logical_and.reduce(list(met)).astype(np.float64)
    return good
