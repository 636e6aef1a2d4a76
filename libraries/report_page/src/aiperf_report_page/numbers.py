"""Metrics of the page: key numbers, all of them with every statistic, side by side with differences.

The first of several runs is the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

from aiperf.sdk.statistics import percentile
from aiperf_plotting.words import named

from aiperf_report_page.markup import Cell, Change, escaped, number, table
from aiperf_report_page.opening import ReportedRun

_KEY = (
    ("request_throughput", "avg"), ("output_token_throughput", "avg"), ("total_token_throughput", "avg"), ("goodput", "avg"),
    ("time_to_first_token", "p50"), ("time_to_first_token", "p99"), ("inter_token_latency", "p50"),
    ("inter_token_latency", "p99"), ("request_latency", "p50"), ("request_latency", "p99"), ("effective_latency", "p99"),
    ("output_token_throughput_per_user", "avg"), ("effective_concurrency", "avg"), ("request_count", "avg"),
    ("error_request_count", "avg"), ("benchmark_duration", "avg"),
)  # fmt: skip
_BROAD = 4
"""Runs that stand beside each other on a page of paper."""
_BEFORE, _AFTER = ("avg", "min"), ("max", "std", "count", "censored", "sum")
_SIDES = {"lower": "lower bound", "upper": "upper bound"}


def title(tag: str) -> str:
    """A metric's name for people."""
    words = named(tag)
    return words[:1].upper() + words[1:]


def statistics(metrics: Sequence[dict[str, Any]]) -> list[str]:
    """The names of all statistics in *metrics*, percentiles in their order."""
    found = dict.fromkeys(name for entry in metrics for name, value in entry.items() if _is_number(value))
    percentiles = sorted((name for name in found if percentile(name) is not None), key=lambda name: percentile(name) or 0.0)
    first = [name for name in _BEFORE if name in found]
    last = [name for name in _AFTER if name in found]
    rest = [name for name in found if name not in (*first, *percentiles, *last)]
    return [*first, *percentiles, *last, *rest]


def tiles(run: ReportedRun) -> str:
    """The key numbers of one run."""
    made = []
    for tag, statistic in _KEY:
        value = run.run.number(tag, statistic)
        if value is None:
            continue
        entry = run.section(tag)
        about = title(tag) if statistic == "avg" and not _spread(entry) else f"{title(tag)}, {statistic}"
        unit = escaped(entry.get("unit", ""))
        made.append(
            f'<div class="tile"><div class="name">{escaped(about)}</div><div class="value">{number(value)}</div>'
            f'<div class="more">{unit}</div></div>'
        )
    return f'<div class="tiles">{"".join(made)}</div>\n' if made else "<p>The results have none of the usual metrics.</p>\n"


def key_numbers(runs: Sequence[ReportedRun]) -> str:
    """The key numbers of several runs, with the difference of each to the baseline."""
    asked = [(tag, statistic, "") for tag, statistic in _KEY]
    rows = [
        [f"{title(tag)}{f', {statistic}' if any(_spread(run.section(tag)) for run in runs) else ''}", *row]
        for tag, statistic, row in _beside(runs, asked)
    ]
    return table("key numbers", ["metric", "unit", *names_of(runs)], rows)


def all_numbers(runs: Sequence[ReportedRun]) -> str:
    """Every metric with every statistic."""
    if len(runs) == 1:
        return of_entries("all metrics", runs[0].metrics())
    known = [run.metrics() for run in runs]
    tags = dict.fromkeys(tag for metrics in known for tag in metrics)
    asked = [
        (tag, statistic, side) for tag in tags for side in ("", *_SIDES)
        for statistic in statistics([_side(metrics.get(tag, {}), side) for metrics in known])
    ]  # fmt: skip
    rows = [
        [title(tag), *([statistic] if not side else [f"{statistic}, {_SIDES[side]}"]), *row]
        for (tag, statistic, side), row in zip(asked, _rows(runs, asked), strict=True)
    ]
    return table("all metrics", ["metric", "statistic", "unit", *names_of(runs)], rows, wide=len(runs) > _BROAD)


def of_entries(caption: str, metrics: dict[str, dict[str, Any]], more: Sequence[tuple[str, dict[str, Any]]] = ()) -> str:
    """Metrics by tag as one table; *more*: further rows with their names."""
    named_rows = [(title(tag), entry) for tag, entry in metrics.items()] + list(more)
    lines: list[tuple[str, str, dict[str, Any]]] = []
    for name, entry in named_rows:
        unit = str(entry.get("unit", ""))
        lines.append((name, unit, entry))
        lines += [(f"{name}, {word}", unit, _side(entry, side)) for side, word in _SIDES.items() if _side(entry, side)]
    columns = statistics([entry for _, _, entry in lines])
    rows: list[list[Cell]] = [
        [name, unit, *(float(entry[each]) if _is_number(entry.get(each)) else None for each in columns)]
        for name, unit, entry in lines
    ]
    return table(caption, ["metric", "unit", *columns], rows, wide=True)


def _beside(runs: Sequence[ReportedRun], asked: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, list[Cell]]]:
    """Tag, statistic and cells of what one of the runs has."""
    rows = _rows(runs, asked)
    known = zip(asked, rows, strict=True)
    return [(tag, statistic, row) for (tag, statistic, _), row in known if any(_has(each) for each in row[1:])]


def _rows(runs: Sequence[ReportedRun], asked: Sequence[tuple[str, str, str]]) -> list[list[Cell]]:
    """Unit and values of each tag, statistic and side."""
    made = []
    known = [run.metrics() for run in runs]
    for tag, statistic, side in asked:
        entries = [metrics.get(tag, {}) for metrics in known]
        unit = next((str(entry["unit"]) for entry in entries if entry), "")
        base, *values = (_value(entry, statistic, side) for entry in entries)
        same = [entry.get("unit", unit) == unit for entry in entries[1:]]
        others = [Change(value, base if alike else None) for value, alike in zip(values, same, strict=True)]
        made.append([unit, base, *others])
    return made


def _value(entry: dict[str, Any], statistic: str, side: str) -> float | None:
    value = _side(entry, side).get(statistic)
    return float(value) if _is_number(value) and math.isfinite(value) else None


def names_of(runs: Sequence[ReportedRun]) -> list[str]:
    """Names of columns, the first of which is the baseline's."""
    return [f"{runs[0].label} (baseline)", *(run.label for run in runs[1:])]


def _has(value: Cell) -> bool:
    return value is not None and not (isinstance(value, Change) and value.value is None)


def _side(entry: dict[str, Any], side: str) -> dict[str, Any]:
    if not side:
        return entry
    found = entry.get(side)
    return found if isinstance(found, dict) else {}


def _spread(entry: dict[str, Any]) -> bool:
    return "p50" in entry


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


__all__ = ["all_numbers", "key_numbers", "names_of", "of_entries", "statistics", "tiles", "title"]
