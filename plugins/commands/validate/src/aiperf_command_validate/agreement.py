"""Agreement between the files of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from aiperf.results import metrics_of

from aiperf_command_validate import outcomes
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.records import Ledger, Records

_STATISTICS = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
_PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
_SINGLE = {"unit", "avg"}
_RATES = (
    ("request_throughput", "request_count"),
    ("output_token_throughput", "total_osl"),
    ("input_token_throughput", "total_isl"),
    ("goodput", "good_request_count"),
)
_ENDS = ("completed", "errors", "cancelled", "aborted_in_flight", "unfinished", "never_sent")
_LEDGER_WORDS = {"completed": "completed", "error": "errors", "cancelled": "cancelled", "aborted": "aborted_in_flight",
                 "unfinished": "unfinished", "never_sent": "never_sent"}  # fmt: skip
_CLOSE = 1e-6


def summary_alone(summary: dict[str, Any], name: str, faults: Faults, *, ours: bool) -> None:
    """The summary agrees with itself.  Rates of the reference (not *ours*) have another time base than the duration."""
    metrics = metrics_of(summary)
    for tag, stats in metrics.items():
        rising = [stats[key] for key in ("min", *_PERCENTILES, "max") if isinstance(stats.get(key), int | float)]
        if any(later < earlier and not _close(later, earlier) for earlier, later in pairwise(rising)):
            faults.add(name, f"{tag}: percentiles go down", kind="percentiles")
    seconds = _value(metrics, "benchmark_duration")
    for rate, count in _RATES if ours else ():
        per_second, total = _value(metrics, rate), _value(metrics, count)
        if seconds is not None and per_second is not None and total is not None and not _close(per_second * seconds, total):
            faults.add(name, f"{rate} × benchmark_duration is {per_second * seconds:g}, {count} is {total:g}")
    begin, end = summary.get("start_time"), summary.get("end_time")
    if isinstance(begin, str) and isinstance(end, str) and end < begin:
        faults.add(name, "end_time is before start_time")
    _arrivals(summary, name, faults)
    outcomes.add_up(summary, name, faults)
    _phases(summary, metrics, name, faults)


def _arrivals(summary: dict[str, Any], name: str, faults: Faults) -> None:
    arrivals = _arrivals_of(summary)
    if arrivals and arrivals.get("planned") != sum(arrivals.get(end, 0) for end in _ENDS):
        faults.add(name, f"{arrivals.get('planned')} planned arrivals are not the sum of their outcomes")


def _phases(summary: dict[str, Any], metrics: dict[str, dict[str, Any]], name: str, faults: Faults) -> None:
    """Counts of the profiling phases add up to the metrics'."""
    phases = [phase for phase in summary.get("phases", ()) if isinstance(phase, dict) and phase.get("kind") == "profiling"]
    for field, tag in (("valid", "request_count"), ("failed", "error_request_count")):
        total = _value(metrics, tag)
        if phases and total is not None and sum(phase.get(field, 0) for phase in phases) != total:
            faults.add(name, f"the profiling phases' {field} requests don't add up to {tag}, {total:g}")


def table(summary: dict[str, Any], rows: list[list[str]], name: str, faults: Faults) -> None:
    """The CSV has the JSON's metrics, sorted by tag, rounded to two decimals."""
    metrics = metrics_of(summary)
    spread = [metrics[tag] for tag in sorted(metrics) if metrics[tag].keys() != _SINGLE]
    single = [metrics[tag] for tag in sorted(metrics) if metrics[tag].keys() == _SINGLE]
    sections = list(_sections(rows))
    for header, stats in ((["Metric", *_STATISTICS], spread), (["Metric", "Value"], single)):
        body = next((section[1:] for section in sections if section[0] == header), [])
        if len(body) != len(stats):
            faults.add(name, f"has {len(body)} rows under {','.join(header[:2])}…, the JSON {len(stats)} such metrics")
            continue
        keys = _STATISTICS if len(header) > 2 else ("avg",)
        for row, statistics in zip(body, stats, strict=True):
            wrong = [key for key, cell in zip(keys, row[1:], strict=False) if not _is_rounded(cell, statistics.get(key))]
            if wrong:
                faults.add(name, f"{row[0]}: {', '.join(wrong)} is not the JSON's", kind="other numbers than the JSON")


def _sections(rows: list[list[str]]) -> Iterator[list[list[str]]]:
    section: list[list[str]] = []
    for row in [*rows, []]:
        if row:
            section.append(row)
        elif section:
            yield section
            section = []


def _is_rounded(cell: str, value: Any) -> bool:
    if value is None or not cell:
        return value is None and not cell
    try:
        return math.isclose(float(cell), float(value), rel_tol=1e-12, abs_tol=0.005 + 1e-9)
    except ValueError:
        return False


def records(summary: dict[str, Any], requests: Records, name: str, faults: Faults) -> None:
    """Lines and values of the per-request file are the summary's counts, sums and extremes."""
    metrics = metrics_of(summary)
    for counts, tag in ((requests.good, "request_count"), (requests.failed, "error_request_count")):
        lines = sum(count for (kind, _), count in counts.items() if kind == "profiling")
        listed = _value(metrics, tag) or 0
        if lines != listed:
            faults.add(name, f"has {lines:,} profiling requests for {tag}, the summary {listed:,.0f}")
    for tag, values in requests.metrics.items():
        stats = metrics.get(tag)
        if stats is None or "count" not in stats:
            continue
        if stats["count"] != values.count:
            faults.add(name, f"has {values.count:,} values of {tag}, the summary {stats['count']:,}", kind="other counts")
            continue
        close = {
            "min": _close(values.low, stats.get("min", values.low)),
            "max": _close(values.high, stats.get("max", values.high)),
            "sum": abs(values.total - stats.get("sum", values.total)) <= _CLOSE * max(values.magnitude, 1e-9),
        }
        for key in (key for key, fine in close.items() if not fine):
            faults.add(name, f"the values of {tag} have another {key} than the summary", kind="other values")
    for phase in summary.get("phases", ()):
        for counts, field in ((requests.good, "valid"), (requests.failed, "failed")):
            lines = counts[phase["kind"], phase["name"]]
            if lines != phase.get(field):
                faults.add(name, f"has {lines:,} {field} requests of phase {phase['name']}, the summary {phase.get(field)}")


def inputs(document: dict[str, Any], requests: Records, name: str, faults: Faults) -> None:
    """Every conversation of a record is in inputs.json, with that many turns."""
    entries = document.get("data")
    if not isinstance(entries, list):
        return
    turns = {entry.get("session_id"): len(entry.get("payloads", ())) for entry in entries if isinstance(entry, dict)}
    for conversation, highest in requests.conversations.items():
        if conversation not in turns:
            faults.add(name, f"conversation {conversation} is not in inputs.json", kind="unknown conversations")
        elif highest >= turns[conversation]:
            faults.add(name, f"conversation {conversation} has turn {highest}, inputs.json {turns[conversation]} turns",
                       kind="unknown turns")  # fmt: skip


def ledger(summary: dict[str, Any] | None, rows: Ledger, requests: Records, name: str, faults: Faults) -> None:
    """Rows are the planned arrivals, ends are the summary's counts, and every record has its row."""
    if rows.record_lines != set(range(1, requests.lines + 1)):
        faults.add(name, f"has rows for {len(rows.record_lines):,} records, there are {requests.lines:,}")
    if summary is None:
        return
    profiling = {phase["name"] for phase in summary.get("phases", ()) if phase.get("kind") == "profiling"}
    counts: Counter[str] = Counter()
    for (phase, outcome), count in rows.outcomes.items():
        if phase in profiling:
            counts[_LEDGER_WORDS.get(outcome, outcome)] += count
    arrivals = _arrivals_of(summary)
    for end in (*_ENDS, *sorted(counts.keys() - set(_ENDS))):
        if arrivals and counts[end] != arrivals.get(end, 0):
            faults.add(name, f"has {counts[end]:,} arrivals {end.replace('_', ' ')}, the summary {arrivals.get(end, 0):,}")


def _arrivals_of(summary: dict[str, Any]) -> dict[str, int]:
    arrivals: dict[str, int] = summary.get("measurement", {}).get("arrivals", {})
    return arrivals


def _value(metrics: dict[str, dict[str, Any]], tag: str) -> float | None:
    value = metrics.get(tag, {}).get("avg")
    return float(value) if isinstance(value, int | float) else None


def _close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_CLOSE, abs_tol=1e-9)
