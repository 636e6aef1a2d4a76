"""Sums of all that was told so far, in the form in which OpenTelemetry sends them.

All sums are cumulative: a sending that failed is made good by the next one.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from aiperf_exporter_otel.conventions import DEFAULT_BOUNDS, KNOWN
from aiperf_exporter_otel.messages import MetricValues, PhaseCounts, RecordGroup, ReducedBatch

Attributes: TypeAlias = tuple[tuple[str, str | bool], ...]
_CUMULATIVE = AggregationTemporality.CUMULATIVE
_SCOPE = "aiperf"
_LEVELS = {"requests.in_flight": "{request}", "phase.elapsed_sec": "s", "phase.timeout_triggered": "1"}


class Buckets:
    """A histogram.  values are counted into the first bucket whose upper bound is not below them."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = np.zeros(len(bounds) + 1, np.int64)
        self.sum, self.low, self.high = 0.0, np.inf, -np.inf

    def add(self, values: NDArray[np.float64]) -> None:
        places = np.searchsorted(np.asarray(self.bounds), values, side="left")
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.sum += float(values.sum())
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def point(self, attributes: Attributes, start_ns: int, now_ns: int) -> HistogramDataPoint:
        counts = self.counts.tolist()
        return HistogramDataPoint(
            dict(attributes), start_ns, now_ns, sum(counts), self.sum, counts, list(self.bounds), self.low, self.high
        )


class Sums:
    """Takes batches and counts; :meth:`data` is what there is.  provider, operation: attributes of the conventions' names."""

    def __init__(self, resource: dict[str, str], provider: str, operation: str) -> None:
        self._resource = Resource(dict(resource))
        self._provider, self._operation = provider, operation
        self._start_ns = time.time_ns()
        self._histograms: dict[tuple[str, str, str], dict[Attributes, Buckets]] = {}
        self._phases: dict[str, PhaseCounts] = {}
        self._cancelled: dict[str, int] = {}
        self.records = 0

    def take_counts(self, counts: PhaseCounts) -> None:
        """The latest numbers of a phase."""
        before = self._phases.get(counts.phase)
        if counts.timed_out is not None or before is None or before.timed_out is None:
            self._phases[counts.phase] = counts

    def take_batch(self, batch: ReducedBatch, skip: int = 0) -> None:
        """The requests of a batch but the first *skip*, which were taken before."""
        group_of = np.frombuffer(batch.group_of, np.int32)
        for number, group in enumerate(batch.groups):
            if group.cancelled:
                count = int((group_of[skip:] == number).sum())
                self._cancelled[group.phase] = self._cancelled.get(group.phase, 0) + count
        for metric in batch.metrics:
            self._take_metric(metric, batch, group_of, skip)
        self.records += batch.count - skip

    def _take_metric(self, metric: MetricValues, batch: ReducedBatch, group_of: NDArray[np.int32], skip: int) -> None:
        values, groups = np.frombuffer(metric.values, np.float64), group_of
        first = skip
        if metric.offsets:
            offsets = np.frombuffer(metric.offsets, np.int64)
            groups, first = np.repeat(group_of, np.diff(offsets)), int(offsets[skip])
        values, groups = values[first:], groups[first:]
        known = KNOWN.get(metric.tag)
        if known is None:
            key, bounds, factor = (f"aiperf.{metric.tag}", metric.unit, metric.title), DEFAULT_BOUNDS, metric.factor
        else:
            factor = 1 / metric.second if known.unit == "s" and metric.second else 1.0
            key, bounds = (known.name, known.unit, ""), known.bounds
        points = self._histograms.setdefault(key, {})
        for number, group in enumerate(batch.groups):
            own = values[(groups == number) & np.isfinite(values)]
            if len(own):
                attributes = self._attributes(group, batch.reducer, metric.tag)
                points.setdefault(attributes, Buckets(bounds)).add(own * factor)

    def _attributes(self, group: RecordGroup, reducer: int, tag: str) -> Attributes:
        found: list[tuple[str, str | bool]] = [
            ("aiperf.worker.id", group.worker), ("aiperf.record_processor.id", f"reducer-{reducer}"),
            ("aiperf.benchmark_phase", group.phase), ("aiperf.was_cancelled", group.cancelled),
            ("aiperf.has_error", group.failed),
        ]  # fmt: skip
        if (known := KNOWN.get(tag)) is not None:
            found += [
                ("gen_ai.operation.name", self._operation), ("gen_ai.provider.name", self._provider),
                ("gen_ai.request.model", group.model), *known.attributes.items(),
            ]  # fmt: skip
            found += [("error.type", group.error)] if group.error else []
        return tuple(found)

    def data(self) -> MetricsData | None:
        """All sums of this instant; None where nothing was told yet."""
        now_ns = time.time_ns()
        metrics = [
            Metric(name, title, unit, Histogram(
                [buckets.point(attributes, self._start_ns, now_ns) for attributes, buckets in points.items()], _CUMULATIVE,
            ))
            for (name, unit, title), points in self._histograms.items() if points
        ]  # fmt: skip
        metrics += self._timing(now_ns)
        if not metrics:
            return None
        scope = ScopeMetrics(InstrumentationScope(_SCOPE), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _timing(self, now_ns: int) -> list[Metric]:
        """Counts and levels of each kind of phase, those of one kind added up."""
        if not self._phases:
            return []
        counters: dict[str, Counter[str]] = {name: Counter() for name in ("sent", "completed", "cancelled", "errors")}
        levels: dict[str, Counter[str]] = {name: Counter() for name in _LEVELS}
        for each in self._phases.values():
            counters["sent"][each.kind] += each.sent
            counters["completed"][each.kind] += each.completed
            counters["errors"][each.kind] += each.errors
            counters["cancelled"][each.kind] = self._cancelled.get(each.kind, 0)
            levels["requests.in_flight"][each.kind] += each.in_flight
            levels["phase.elapsed_sec"][each.kind] += each.elapsed_s  # type: ignore[assignment]  # a number
            levels["phase.timeout_triggered"][each.kind] += int(bool(each.timed_out))
        found = [
            self._sum(f"aiperf.timing.requests.{name}", "{request}", values, now_ns, monotonic=True)
            for name, values in counters.items()
        ]
        for name, values in levels.items():
            found.append(self._sum(f"aiperf.timing.{name}", _LEVELS[name], values, now_ns, monotonic=False))
        return found

    def _sum(self, name: str, unit: str, values: Counter[str], now_ns: int, *, monotonic: bool) -> Metric:
        points = [
            NumberDataPoint({"aiperf.benchmark_phase": phase}, self._start_ns, now_ns, value) for phase, value in values.items()
        ]
        return Metric(name, "", unit, Sum(points, _CUMULATIVE, monotonic))


__all__ = ["Buckets", "Sums"]
