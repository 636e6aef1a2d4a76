"""Sections of the page with what was measured beside the metrics: measurement, phases, slices, telemetry, tables, groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from aiperf import AiperfError
from aiperf_results import metrics_of

from aiperf_report_page.markup import Cell, escaped, flat, listed, number, section, table
from aiperf_report_page.numbers import of_entries, title
from aiperf_report_page.opening import ReportedRun
from aiperf_report_page.sections import side_by_side

_MOST_ROWS = 1000
"""Rows of a table whose rows depend on the run: series, groups, slices."""
_EDGES = ("_low", "_high")
"""Ends of the names of a bucket's edges."""
_IN_SLICES = (
    "request_throughput", "output_token_throughput", "request_count", "time_to_first_token", "inter_token_latency",
    "request_latency",
)  # fmt: skip
_PHASE = {
    "name": "phase", "kind": "kind", "start_time": "begin", "end_time": "end", "duration": "duration (s)", "valid": "answered",
    "failed": "failed",
}  # fmt: skip
_SOURCE = ("source", "distribution", "version", "interval_s", "samples", "failed", "missed")
_ELSEWHERE = frozenset((
    "schema_version", "aiperf_version", "benchmark_id", "input_config", "run_info", "was_cancelled", "is_complete",
    "incomplete_reason", "error_summary", "start_time", "end_time", "warmup_metrics", "observation_window", "delivered_load",
    "measurement", "outcomes", "finish_reasons", "survival", "urls", "groups", "telemetry", "telemetry_data", "tables",
    "phases", "plugins", "warnings",
))  # fmt: skip
"""Keys of the summary that another section shows."""


def measurement(runs: Sequence[ReportedRun]) -> str:
    """The client's own part in the times, and the notes on it."""
    apart = ("verdict", "reasons", "notes", "arrivals", "findings", "scope")
    parts = [side_by_side("measurement", runs, "measurement", apart)]
    for run in runs:
        notes = run.section("measurement").get("notes") or []
        if notes:
            name = "Notes" if len(runs) == 1 else f"Notes on {run.label}"
            parts.append(f"<h3>{escaped(name)}</h3>\n{listed(list(map(str, notes)))}")
        findings = run.section("measurement").get("findings") or []
        parts.append(_objects(_of("findings", run, runs), [each for each in findings if isinstance(each, dict)]))
    return section("measurement", "Measurement", *parts)


def phases(runs: Sequence[ReportedRun]) -> str:
    """Each phase and each slice."""
    parts = []
    for run in runs:
        rows = [[_plain(each.get(name)) for name in _PHASE] for each in run.rows("phases")]
        parts.append(table(_of("phases", run, runs), list(_PHASE.values()), rows))
        parts.append(of_entries(_of("metrics of the warm-up", run, runs), metrics_of(run.section("warmup_metrics"))))
        parts.append(_slices(run, runs))
    return section("phases", "Phases and slices", *parts)


def _slices(run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    try:
        found = run.run.slices()
    except AiperfError as error:
        return f'<p class="bad">{escaped(error.message)}</p>\n'
    if not found:
        return ""
    tags = [tag for tag in _IN_SLICES if any(isinstance(each.get(tag), dict) for each in found)]
    named = ((tag, name) for tag in tags for name in ("avg", "p99"))
    asked = [one for one in named if any(_number(each, *one) is not None for each in found)]
    units = {tag: next((each[tag].get("unit", "") for each in found if isinstance(each.get(tag), dict)), "") for tag in tags}
    begin = int(found[0]["start_ns"])
    head = ["from (s)", "to (s)", *(f"{title(tag)}, {name} ({units[tag]})" for tag, name in asked)]
    rows: list[list[Cell]] = [
        [*((int(each[end]) - begin) / 1e9 for end in ("start_ns", "end_ns")), *(_number(each, *one) for one in asked)]
        for each in found[:_MOST_ROWS]
    ]
    return table(_of("slices", run, runs), head, rows, wide=True) + _left(len(found), "slices")


def telemetry(runs: Sequence[ReportedRun]) -> str:
    """Sources, targets and series that were sampled beside the load."""
    parts = []
    for run in runs:
        sources = run.rows("telemetry")
        if not sources:
            parts += [_gpus(run, runs), _sampled(run, runs)]
            continue
        about = [{name: each.get(name) for name in _SOURCE} for each in sources]
        parts.append(_objects(_of("telemetry sources", run, runs), about))
        targets = [{"source": each.get("source"), **target} for each in sources for target in each.get("targets", ())]
        parts.append(_objects(_of("telemetry targets", run, runs), targets))
        series = [(str(each.get("source")), one) for each in sources for one in each.get("series", ()) if isinstance(one, dict)]
        parts += [_series(kind, series, run, runs) for kind in dict.fromkeys(str(one.get("kind") or "") for _, one in series)]
    return section("telemetry", "Telemetry", *parts)


def _series(
    kind: str, known: Sequence[tuple[str, Mapping[str, Any]]], run: ReportedRun, runs: Sequence[ReportedRun]
) -> str:  # fmt: skip
    """The series of one kind; edges of the buckets in which percentiles lie have a table of their own."""
    named, edges = [], []
    for source, one in known:
        if str(one.get("kind") or "") != kind:
            continue
        name, unit, stats = _series_name(source, one), {"unit": one.get("unit", "")}, one.get("stats") or {}
        named.append((name, unit | {each: value for each, value in stats.items() if not each.endswith(_EDGES)}))
        if found := {each: value for each, value in stats.items() if each.endswith(_EDGES)}:
            edges.append((name, unit | found))
    words = f"telemetry: {kind}s" if kind else "telemetry series"
    made = of_entries(_of(words, run, runs), {}, named[:_MOST_ROWS]) + _left(len(named), "series")
    about = _of(f"{words}, edges of the buckets of percentiles", run, runs)
    return made + of_entries(about, {}, edges[:_MOST_ROWS]) + _left(len(edges), "series")


def _series_name(source: str, series: Mapping[str, Any]) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in (series.get("labels") or {}).items())
    phase = f"phase {series['phase']}" if "phase" in series else ""
    parts = (source, str(series.get("target") or ""), str(series.get("name") or ""), labels, phase)
    return " · ".join(filter(None, parts))


def _gpus(run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    """GPUs as the reference's summary has them."""
    rows = [
        (f"{gpu.get('gpu_name') or name} ({host}, {name}) · {tag}", entry)
        for host, about in (run.section("telemetry_data").get("endpoints") or {}).items()
        for name, gpu in about.get("gpus", {}).items() for tag, entry in gpu.get("metrics", {}).items()
    ]  # fmt: skip
    return of_entries(_of("GPUs", run, runs), {}, rows[:_MOST_ROWS]) + _left(len(rows), "series")


def _sampled(run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    """Series of the reference's files of server metrics: their samples in short."""
    import numpy as np

    try:
        found = [each for each in run.run.telemetry() if len(each.values)]
    except AiperfError as error:
        return f'<p class="bad">{escaped(error.message)}</p>\n'
    if run.section("telemetry_data"):
        found = [each for each in found if "gpu_uuid" not in each.labels]  # they stand in the summary
    rows = []
    for each in found:
        about = {"name": each.name, "labels": each.labels, "target": each.target}
        values = each.values[np.isfinite(each.values)]
        spread = {"avg": float(values.mean()), "min": float(values.min()), "max": float(values.max())} if len(values) else {}
        rows.append((_series_name(each.source, about), {"unit": each.unit, **spread, "count": len(values)}))
    return of_entries(_of("samples of series", run, runs), {}, rows[:_MOST_ROWS]) + _left(len(rows), "series")


def tables(runs: Sequence[ReportedRun]) -> str:
    """Tables that plugins made, groups of requests, URLs, censored statistics, and everything else of the summary."""
    parts = []
    for run in runs:
        about = run.section("tables")
        parts += [_table(name, about[name], run, runs) for name in about if isinstance(about[name], dict)]
        parts.append(_grouped("groups", "key", run, runs) + _grouped("urls", "url", run, runs))
        survival = _of("with requests in flight at the end as at least as long", run, runs)
        parts.append(of_entries(survival, run.section("survival")))
        known = _ELSEWHERE | set(about) | set(metrics_of(run.summary))
        rest = {name: value for name, value in run.summary.items() if name not in known}
        leaves = flat(rest) if rest else ()
        rows = [[path, value if isinstance(value, str) else number(_float(value))] for path, value in leaves]
        further = table(_of("further facts of the summary", run, runs), ["name", "value"], rows[:_MOST_ROWS])
        parts.append(further + _left(len(rows), "facts"))
    return section("tables", "Tables and groups", *parts)


def _table(name: str, about: Mapping[str, Any], run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    columns = [each for each in about.get("columns") or () if isinstance(each, dict)]
    rows = [[_plain(row.get(str(each.get("name")))) for each in columns] for row in run.rows(name)]
    head = [f"{each.get('name')} ({each['unit']})" if each.get("unit") else str(each.get("name")) for each in columns]
    made = table(_of(str(about.get("title") or name), run, runs), [word.replace("_", " ") for word in head], rows[:_MOST_ROWS])
    return made + _left(len(rows), "rows") + listed(list(map(str, about.get("notes") or ())), "notes")


def _grouped(name: str, key: str, run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    found = run.rows(name)
    if not found:
        return ""
    outcomes = dict.fromkeys(outcome for each in found for outcome in each.get("outcomes") or {})
    about = [
        {"of": each.get("text", "URL"), key: each.get(key), "phase": each.get("phase"), "started": each.get("started"),
         **{outcome: (each.get("outcomes") or {}).get(outcome) for outcome in outcomes}}
        for each in found
    ]  # fmt: skip
    entries = [
        (f"{each.get('text', 'URL')} {each.get(key)}, {title(tag)}", entry)
        for each in found for tag, entry in (each.get("metrics") or {}).items() if isinstance(entry, dict)
    ]  # fmt: skip
    made = _objects(_of(name, run, runs), about[:_MOST_ROWS]) + _left(len(about), name)
    return made + of_entries(_of(f"metrics of {name}", run, runs), {}, entries[:_MOST_ROWS]) + _left(len(entries), "rows")


def _objects(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Objects of alike keys as a table; keys that no object has a value for are left out."""
    known = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in known if any(row.get(name) is not None for row in rows)]
    cells = [[_instant(row.get(name)) if name.endswith("_ns") else _plain(row.get(name)) for name in names] for row in rows]
    return table(caption, [name.removesuffix("_ns").replace("_", " ") for name in names], cells)


def _plain(value: Any) -> Cell:
    """A JSON value as a cell."""
    if isinstance(value, dict) and isinstance(value.get("avg"), int | float):
        return float(value["avg"])
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) or value is None:
        return value
    if isinstance(value, list) and value and all(isinstance(each, int | float) for each in value):
        return f"{len(value)} numbers"  # points of a curve, as consoles have them
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _instant(value: object) -> Cell:
    """A wall clock in ns."""
    if not isinstance(value, int):
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value // 1000)).isoformat(timespec="milliseconds")


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _number(each: Mapping[str, Any], tag: str, name: str) -> float | None:
    entry = each.get(tag)
    value = entry.get(name) if isinstance(entry, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of(name: str, run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    return name if len(runs) == 1 else f"{name}: {run.label}"


def _left(count: int, what: str) -> str:
    if count <= _MOST_ROWS:
        return ""
    return f'<p class="notes">The first {_MOST_ROWS:,} of {count:,} {what}; the files of the run have all.</p>\n'


__all__ = ["measurement", "phases", "tables", "telemetry"]
