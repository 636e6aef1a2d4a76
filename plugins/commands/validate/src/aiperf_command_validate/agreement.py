"""Agreement between the files of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from aiperf.sdk.model import names
from aiperf.sdk.statistics import percentile
from aiperf_results import metrics_of

from aiperf_command_validate import gpus, outcomes, recomputed
from aiperf_command_validate.choice import Choice
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.numbers import CLOSE, close, value_of
from aiperf_command_validate.records import Records

_SINGLE = {"unit", "avg", "lower", "upper"}
_REASONS = ["Finish Reason", "Requests"]
_INTERVALS = ["Metric", "ci_low", "ci_high", "ci_level"]
_MANY = 100
"""From so many different finish reasons on, the summary counts further ones together."""
_ENDS = (
    "completed", "errors", "cut", "cancelled", "aborted_in_flight", "unfinished", "damaged", "never_sent", "unknown",
    "overflowed",
)  # fmt: skip


def summary_alone(summary: dict[str, Any], name: str, faults: Faults, *, ours: bool) -> None:
    """The summary agrees with itself.  Rates of the reference (not *ours*) have another time base than the duration."""
    metrics, percentiles = metrics_of(summary), Choice.of(summary).names
    for tag, stats in metrics.items():
        if ours and (unasked := [key for key in stats if percentile(key) is not None and key not in percentiles]):
            faults.add(name, f"{tag} has {names(unasked)}, and input_config.artifacts asks for no such percentile")
        rising = [stats[key] for key in ("min", *percentiles, "max") if isinstance(stats.get(key), int | float)]
        if any(later < earlier and not close(later, earlier) for earlier, later in pairwise(rising)):
            faults.add(name, f"{tag}: percentiles go down", kind="percentiles")
    if ours:
        recomputed.derived(metrics, name, faults)
        recomputed.derived(summary.get("warmup_metrics", {}), name, faults, "warmup_metrics.")
        recomputed.conclusions(summary, name, faults)
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
        total = value_of(metrics, tag)
        if phases and total is not None and sum(phase.get(field, 0) for phase in phases) != total:
            faults.add(name, f"the profiling phases' {field} requests don't add up to {tag}, {total:g}")


def intervals(summary: dict[str, Any], rows: list[list[str]], name: str, faults: Faults) -> None:
    """The CSV has the confidence intervals of the JSON, sorted by tag, with four decimals."""
    metrics = metrics_of(summary)
    known = [metrics[tag] for tag in sorted(metrics) if "ci_low" in metrics[tag]]
    expected = [[f"{one['ci_low']:.4f}", f"{one['ci_high']:.4f}", f"{one['ci_level']:g}"] for one in known]
    found = [row[1:] for section in _sections(rows) if section[0] == _INTERVALS for row in section[1:]]
    if found != expected:
        faults.add(name, f"has {len(found)} confidence intervals that are not the {len(expected)} of the summary")


def table(summary: dict[str, Any], rows: list[list[str]], name: str, faults: Faults) -> None:
    """The CSV has the JSON's metrics, sorted by tag, rounded to two decimals, with the statistics that were chosen."""
    metrics, shown = metrics_of(summary), Choice.of(summary).shown
    spread = [metrics[tag] for tag in sorted(metrics) if not metrics[tag].keys() <= _SINGLE]
    single = [metrics[tag] for tag in sorted(metrics) if metrics[tag].keys() <= _SINGLE]
    sections = list(_sections(rows))
    tables = ((["Metric", *shown], shown, spread), (["Metric", "Value"], ("avg",), single))
    for section in sections:
        if section[0][: len(gpus.HEAD)] == gpus.HEAD:
            gpus.gpu_table(summary, section, name, faults)
        elif section[0] not in (_REASONS, _INTERVALS, *(header for header, _, _ in tables)):
            faults.add(name, f"has a table of {len(section[0])} columns under {','.join(section[0][:2])}…, as no run writes")
        for title in (row[0] for row in section[1:] if len(row) != len(section[0])):
            faults.add(name, f"{title}: has another number of cells than its header", kind="cells and headers")
    for header, keys, stats in tables:
        body = next((section[1:] for section in sections if section[0] == header), [])
        if len(body) != len(stats):
            faults.add(name, f"has {len(body)} rows under {','.join(header[:2])}…, the JSON {len(stats)} such metrics")
            continue
        for row, statistics in zip(body, stats, strict=True):
            wrong = [key for key, cell in zip(keys, row[1:], strict=False) if not _is_rounded(cell, statistics.get(key))]
            if wrong:
                faults.add(name, f"{row[0]}: {', '.join(wrong)} is not the JSON's", kind="other numbers than the JSON")


def ends(summary: dict[str, Any], rows: list[list[str]], name: str, faults: Faults) -> None:
    """The CSV has the JSON's finish reasons, in its order."""
    body = next((section[1:] for section in _sections(rows) if section[0] == _REASONS), [])
    if body != [[reason, str(count)] for reason, count in summary.get("finish_reasons", {}).items()]:
        faults.add(name, "the finish reasons are not the JSON's", kind="other numbers than the JSON")


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
        listed = value_of(metrics, tag) or 0
        if lines != listed:
            faults.add(name, f"has {lines:,} profiling requests for {tag}, the summary {listed:,.0f}")
    reasons = summary.get("finish_reasons", {})
    if len(reasons) < _MANY and dict(requests.reasons) != reasons:
        listed, told = sum(requests.reasons.values()), sum(reasons.values())
        faults.add(name, f"its {listed:,} finish reasons are not the {told:,} that the summary counts")
    for tag, values in requests.metrics.items():
        stats = metrics.get(tag)
        if stats is None or "count" not in stats:
            continue
        if stats["count"] != values.count:
            faults.add(name, f"has {values.count:,} values of {tag}, the summary {stats['count']:,}", kind="other counts")
            continue
        extent = values.extent()
        same = {  # of estimates, the extremes are midpoints
            "min": "lower" in stats or close(extent.low, stats.get("min", extent.low)),
            "max": "upper" in stats or close(extent.high, stats.get("max", extent.high)),
            "sum": abs(extent.total - stats.get("sum", extent.total)) <= CLOSE * max(extent.magnitude, 1e-9),
        }
        for key in (key for key, fine in same.items() if not fine):
            faults.add(name, f"the values of {tag} have another {key} than the summary", kind="other values")
    first, merged = requests.metrics.get("time_to_first_token"), summary.get("measurement", {}).get("merged_first")
    if first is not None and merged is not None and first.estimates > merged:
        faults.add(name, f"has {first.estimates:,} intervals of first content, the summary has merged_first {merged:,}")
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


def _arrivals_of(summary: dict[str, Any]) -> dict[str, int]:
    arrivals: dict[str, int] = summary.get("measurement", {}).get("arrivals", {})
    return arrivals
