"""``server_metrics_export.json``: the reference's keys in its order, schema version 1.1."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiperf import Summary
from aiperf.sdk.summary import SourceSummary, TargetSummary

from aiperf_exporter_server_metrics.families import FamilySeries, MetricFamily, SlicePart, families, finite, phase_of

SCHEMA_VERSION = "1.1"
_GAUGE, _COUNTER, _HISTOGRAM = ("avg", "min", "max"), ("total", "rate"), ("count", "sum", "avg")


def document(summary: Summary, source: SourceSummary) -> dict[str, Any]:
    """Everything that the file has; the source has series."""
    profiling, warmup = phase_of(summary, "profiling"), phase_of(summary, "warmup")
    fields = {
        "schema_version": SCHEMA_VERSION,
        "aiperf_version": summary.version,
        "benchmark_id": summary.run_id,
        "summary": _summary(summary, source),
        "metrics_phase": "profiling",
        "metrics": {} if profiling is None else _metrics(families(summary, source, profiling, sliced=True)),
        "warmup_metrics": None if warmup is None else _metrics(families(summary, source, warmup)),
        "input_config": summary.config,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _metrics(known: list[MetricFamily]) -> dict[str, Any]:
    """By name; a second family of one name, which another server has with another type, has it behind the name."""
    found: dict[str, Any] = {}
    for family in known:
        name = family.name if family.name not in found else f"{family.name} ({family.kind})"
        about = {"type": "gauge" if family.kind == "info" else family.kind, "description": family.help, "unit": family.unit}
        series = [_series(each, family.kind) for each in family.series]
        found[name] = {**{key: value for key, value in about.items() if value or key != "unit"}, "series": series}
    return found


def _series(series: FamilySeries, kind: str) -> dict[str, Any]:
    slices = [] if kind == "info" else [_slice(part, kind) for part in series.slices]
    fields = {"endpoint_url": series.endpoint, "labels": series.labels, "stats": series.stats, "buckets": series.buckets,
              "timeslices": slices}  # fmt: skip
    return {name: value for name, value in fields.items() if value}


def _slice(part: SlicePart, kind: str) -> dict[str, Any]:
    edges: dict[str, Any] = {"start_ns": part.slice.start_ns, "end_ns": part.slice.end_ns}
    if not part.slice.complete:
        edges["is_complete"] = False
    names = {"counter": _COUNTER, "histogram": _HISTOGRAM}.get(kind, _GAUGE)
    values = finite((name, part.series.stats.get(name)) for name in names)
    return {**edges, **values, **({"buckets": part.series.buckets} if part.series.buckets else {})}


def _summary(summary: Summary, source: SourceSummary) -> dict[str, Any]:
    return {
        "endpoints_configured": [target.name for target in source.targets],
        "endpoints_successful": [target.name for target in source.targets if target.samples],
        "start_time": _iso(summary.start_ns),
        "end_time": _iso(summary.end_ns),
        "endpoint_info": {target.name: _endpoint(target) for target in source.targets},
        "phase_time_ranges": {phase.name: {"start_ns": phase.start_ns, "end_ns": phase.end_ns} for phase in summary.phases},
    }


def _endpoint(target: TargetSummary) -> dict[str, Any]:
    """The reference's fields, then what is ours."""
    first, last = target.first_ns, target.last_ns
    fields = {
        "total_fetches": target.samples + target.failed, "first_fetch_ns": first, "last_fetch_ns": last,
        "avg_fetch_latency_ms": target.latency_ms, "unique_updates": target.updates,
        "first_update_ns": target.first_update_ns, "last_update_ns": target.last_update_ns,
        "duration_seconds": None if first is None or last is None else (last - first) / 1e9,
        "avg_update_interval_ms": target.update_interval_ms,
        "median_update_interval_ms": target.median_update_interval_ms,
        "failed_fetches": target.failed, "missed_fetches": target.missed, "last_error": target.why or None,
        "late_s": {str(phase): seconds for phase, seconds in target.late.items()} or None,
        "partial_phases": list(target.partial) or None, "unsettled_phases": list(target.unsettled) or None,
    }  # fmt: skip
    return {name: value for name, value in msgspec.to_builtins(fields).items() if value is not None}


def _iso(wall_ns: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)).isoformat(timespec="microseconds")
