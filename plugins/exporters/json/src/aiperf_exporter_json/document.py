"""The document: the reference's field names in its order, schema version 1.4 (1.5 with a scenario), then what is ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiperf import Result, Summary
from aiperf.sdk.summary import ErrorCount, GroupSummary, PhaseSummary, SourceSummary, TargetSummary, UrlSummary
from aiperf.sdk.table import SummaryTable
from aiperf_gpus import has_gpus, telemetry_data

SCHEMA_VERSION, SCENARIO_SCHEMA_VERSION = "1.4", "1.5"
"""Without and with a scenario, whose keys the later one has."""

_FIRST = (
    "request_throughput", "request_latency", "request_count", "time_to_first_token", "time_to_second_token",
    "inter_token_latency", "output_token_throughput", "output_token_throughput_per_user", "output_sequence_length",
    "input_sequence_length", "goodput", "good_request_count", "output_token_count", "reasoning_token_count",
    "min_request_timestamp", "max_response_timestamp", "inter_chunk_latency", "total_output_tokens",
    "total_reasoning_tokens", "benchmark_duration", "total_isl", "total_osl", "error_request_count", "error_isl",
    "total_error_isl",
)  # fmt: skip
"""Metrics in the order of the reference; the others come last, by tag."""


def document(summary: Summary) -> dict[str, Any]:
    """Everything in the summary, in the file's order; what is absent has no key."""
    results = summary.results
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION if summary.scenario is None else SCENARIO_SCHEMA_VERSION,
        "aiperf_version": summary.version,
        "benchmark_id": summary.run_id,
        **statistics({tag: results[tag] for tag in _FIRST if tag in results}),
        "input_config": summary.config,
        "run_info": _run_info(summary),
        "was_cancelled": summary.cancelled,
        "is_complete": summary.complete,
        "incomplete_reason": summary.incomplete_reason,
        "error_summary": [_error(one) for one in summary.errors],
        "start_time": iso(summary.start_ns),
        "end_time": iso(summary.end_ns),
        "warmup_metrics": _warmup(summary.phases),
        "metadata": _metadata(summary) or None,
        "observation_window": _seconds(summary.observation_window_s),
        "delivered_load": _present(summary.delivered),
        "measurement": _present(summary.measurement),
        "outcomes": summary.outcomes or None,
        "finish_reasons": summary.finish_reasons or None,
        "survival": statistics(summary.survival) or None,
        "urls": [_url(one) for one in summary.urls] or None,
        "groups": [_group(one) for one in summary.groups] or None,
        "telemetry": [_source(one) for one in summary.telemetry] or None,
        "telemetry_data": telemetry_data(summary) if has_gpus(summary) else None,
        "tables": {one.name: _about(one) for one in summary.tables} or None,
        **{one.name: _rows(one) for one in summary.tables},
        "phases": [_phase(phase) for phase in summary.phases],
        "plugins": {"kernel": summary.version, "used": [_present(plugin) for plugin in summary.plugins]},
        "warnings": list(summary.warnings) or None,
        **{name: summary.extra[name] for name in sorted(summary.extra)},
        **({} if summary.scenario is None else summary.scenario.fields),
    }
    found = {name: value for name, value in fields.items() if value is not None}
    rest = {tag: results[tag] for tag in sorted(results) if tag not in found}
    return found | statistics(rest)


def statistics(results: Mapping[str, Result]) -> dict[str, dict[str, Any]]:
    """MetricStats by tag, unrounded; a metric of which nothing is finite is left out."""
    return {tag: entry for tag, result in results.items() if (entry := result.entry())}


def iso(wall_ns: int) -> str:
    """ISO 8601 to the microsecond, in UTC and saying so.  Integers throughout: a float has no ns left for today."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)).isoformat(timespec="microseconds")


def _run_info(summary: Summary) -> dict[str, Any]:
    info = {"benchmark_id": summary.run_id, "random_seed": summary.seed, "trial": 0, "cli_command": summary.command}
    return {name: value for name, value in info.items() if value is not None}


def _metadata(summary: Summary) -> dict[str, Any]:
    """What a scenario says of the run, and where a data set with a name came from."""
    dataset = {"dataset": summary.provenance} if summary.provenance else {}
    return {**dataset, **({} if summary.scenario is None else summary.scenario.metadata)}


def _error(one: ErrorCount) -> dict[str, Any]:
    return {"error_details": msgspec.to_builtins(one.error), "count": one.count}


def _warmup(phases: tuple[PhaseSummary, ...]) -> dict[str, Any] | None:
    warmup = next((phase for phase in phases if phase.kind == "warmup"), None)
    if warmup is None:
        return None
    return {tag: stats for tag, stats in statistics(warmup.results).items() if "unit" in stats}  # counts by name are no metrics


def _phase(phase: PhaseSummary) -> dict[str, Any]:
    return {
        "name": phase.name,
        "kind": phase.kind,
        "index": phase.index,
        "start_time": iso(phase.start_ns),
        "end_time": iso(phase.end_ns),
        "duration": _seconds((phase.end_ns - phase.start_ns) / 1e9),
        "valid": phase.valid,
        "failed": phase.failed,
    }


def _url(one: UrlSummary) -> dict[str, Any]:
    about = {"url": one.url, "started": one.started, "outcomes": one.outcomes}
    return {**about, "error_summary": [_error(each) for each in one.errors], "metrics": statistics(one.results)}


def _group(one: GroupSummary) -> dict[str, Any]:
    about = {"text": one.text, "key": one.key, "phase": one.phase, "started": one.started, "outcomes": one.outcomes}
    return {**about, "error_summary": [_error(each) for each in one.errors], "metrics": statistics(one.results)}


def _source(one: SourceSummary) -> dict[str, Any]:
    counts = {"interval_s": one.interval_s, "samples": one.samples, "failed": one.failed, "missed": one.missed}
    series = [
        {"phase": each.phase, **each.entry(), **({"description": each.help} if each.help else {})} for each in one.series
    ]
    about = {"source": one.name, "distribution": one.distribution, "version": one.version, **counts}
    return {**about, **({"targets": [*map(_target, one.targets)]} if one.targets else {}), "series": series}


def _target(one: TargetSummary) -> dict[str, Any]:
    """Times as the reference has them in its endpoint info; what is unknown or empty is left out."""
    at = {
        "first_fetch_ns": one.first_ns, "last_fetch_ns": one.last_ns, "first_update_ns": one.first_update_ns,
        "last_update_ns": one.last_update_ns, "avg_fetch_latency_ms": one.latency_ms,
        "avg_update_interval_ms": one.update_interval_ms, "median_update_interval_ms": one.median_update_interval_ms,
        "last_failure": one.why or None, "late_s": {str(phase): late_s for phase, late_s in one.late.items()} or None,
        "partial_phases": one.partial or None, "unsettled_phases": one.unsettled or None,
    }  # fmt: skip
    counts = {"samples": one.samples, "failed": one.failed, "missed": one.missed, "unique_updates": one.updates}
    known = {name: value for name, value in at.items() if value is not None}
    return {"name": one.name, "interval_s": one.interval_s, **counts, **known}


def _about(table: SummaryTable) -> dict[str, Any]:
    """Everything of a table but the rows, which stand under its name."""
    columns = [{"name": column.name, "unit": column.unit} for column in table.columns]
    known = {"title": table.title, "columns": columns, "notes": list(table.notes), "package": table.package}
    return {name: value for name, value in known.items() if value}


def _rows(table: SummaryTable) -> list[dict[str, Any]]:
    """The rows as objects; what is absent or not finite has no key."""
    keys = [column.name for column in table.columns]
    return [
        {
            key: cell
            for key, cell in zip(keys, row, strict=True)
            if cell is not None and not (isinstance(cell, float) and not math.isfinite(cell))
        }
        for row in table.rows
    ]


def _seconds(value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"unit": "sec", "avg": value}


def _present(part: Any) -> dict[str, Any]:
    """A part of the summary without what is unknown or not finite."""
    known: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(part).items():
        if isinstance(value, dict):
            if value:
                known[name] = _present(value)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            known[name] = [_present(item) for item in value]
        elif value is not None and not (isinstance(value, float) and not math.isfinite(value)):
            known[name] = value
    return known
