"""The servers' series of one phase by family, as the files show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aiperf import Summary
from aiperf.sdk.summary import SeriesSummary, Slice, SourceSummary
from msgspec import Struct

SOURCE = "server_metrics"
"""The name of the telemetry source."""
PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
GAUGE = ("avg", "min", "max", "std", *PERCENTILES)
COUNTER = ("total", "rate", "rate_avg", "rate_min", "rate_max", "rate_std")
HISTOGRAM = ("count", "count_rate", "sum", "sum_rate", "avg", *(f"{name}_estimate" for name in PERCENTILES))
EDGES = ("p50_low", "p50_high", "p99_low", "p99_high")
"""Ours: the edges of the bucket that has the rank."""


class SlicePart(Struct, frozen=True):
    """A series in a time slice."""

    slice: Slice
    series: SeriesSummary


class FamilySeries(Struct, frozen=True):
    """A series of a family.  stats: its finite statistics under the names of the files."""

    endpoint: str
    labels: dict[str, str]
    stats: dict[str, float]
    buckets: dict[str, float] = {}
    slices: tuple[SlicePart, ...] = ()


class MetricFamily(Struct, frozen=True):
    """kind: ``gauge``, ``counter``, ``histogram`` or ``info``."""

    name: str
    kind: str
    help: str
    unit: str
    series: tuple[FamilySeries, ...]


def source_of(summary: Summary) -> SourceSummary | None:
    """The servers' metrics; None where no page was read."""
    source = next((each for each in summary.telemetry if each.name == SOURCE), None)
    return source if source is not None and source.series else None


def phase_of(summary: Summary, kind: str) -> int | None:
    """The index of the first phase of the kind, ``warmup`` or ``profiling``; None without one."""
    return next((phase.index for phase in summary.phases if phase.kind == kind), None)


def families(summary: Summary, source: SourceSummary, phase: int, *, sliced: bool = False) -> list[MetricFamily]:
    """All families with figures in the phase, sorted by name; their series by endpoint and labels.  *sliced*: with slices."""
    parts = _slices(summary, source) if sliced else {}
    groups: dict[tuple[str, str], list[SeriesSummary]] = {}
    for series in source.series:
        if series.phase == phase:
            groups.setdefault((series.name, _kind(series)), []).append(series)
    return [_family(name, kind, members, parts) for (name, kind), members in sorted(groups.items())]


def finite(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """What is known and finite."""
    return {name: value for name, value in values if value is not None and value - value == 0}


def _family(
    name: str, kind: str, members: list[SeriesSummary], parts: dict[tuple[Any, ...], list[SlicePart]]
) -> MetricFamily:
    first = members[0]
    series = [
        FamilySeries(each.target, each.labels, _stats(each, kind, slices), each.buckets, slices)
        for each in members
        for slices in [tuple(parts.get(_key(each), ()))]
    ]
    series.sort(key=lambda each: (each.endpoint, sorted(each.labels.items())))
    return MetricFamily(name, kind, first.help, first.unit, tuple(series))


def _kind(series: SeriesSummary) -> str:
    return "gauge" if series.kind == "summary" else series.kind


def _key(series: SeriesSummary) -> tuple[Any, ...]:
    return series.target, series.name, series.kind, series.unit, tuple(sorted(series.labels.items())), tuple(series.buckets)


def _slices(summary: Summary, source: SourceSummary) -> dict[tuple[Any, ...], list[SlicePart]]:
    found: dict[tuple[Any, ...], list[SlicePart]] = {}
    for slice_, members in zip(summary.slices, source.slices, strict=False):
        for series in members:
            found.setdefault(_key(series), []).append(SlicePart(slice_, series))
    return found


def _stats(series: SeriesSummary, kind: str, slices: tuple[SlicePart, ...]) -> dict[str, float]:
    stats, more = series.stats, finite((name, series.stats.get(name)) for name in ("resets",))
    if kind == "info":
        return finite([(name, 0.0 if name == "std" else 1.0) for name in GAUGE])
    if kind == "counter":
        rates = [part.series.stats["rate"] for part in slices if part.slice.complete and "rate" in part.series.stats]
        spread = _spread(rates) if rates else {}
        return {**finite((name, {**stats, **spread}.get(name)) for name in COUNTER), **more}
    if kind == "histogram":
        return {**finite(_of_histogram(series)), **more}
    return finite((name, stats.get(name)) for name in GAUGE)


def _of_histogram(series: SeriesSummary) -> Iterator[tuple[str, float | None]]:
    stats = series.stats
    count, total, rate = stats.get("count"), stats.get("sum"), stats.get("rate")
    known = {
        **stats, **series.estimates, "count_rate": rate,
        "sum_rate": total * rate / count if count and total is not None and rate is not None else 0.0 if count == 0 else None,
    }  # fmt: skip
    yield from ((name, known.get(name)) for name in (*HISTOGRAM, *EDGES))


def _spread(rates: list[float]) -> dict[str, float]:
    """Mean, ends and deviation of a counter's rate over the time slices."""
    mean = sum(rates) / len(rates)
    deviation = (sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)) ** 0.5 if len(rates) > 1 else 0.0
    return {"rate_avg": mean, "rate_min": min(rates), "rate_max": max(rates), "rate_std": deviation}
