"""``server_metrics_export.csv``: a table for each type of series, with a column for each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from aiperf import Summary
from aiperf.sdk.summary import SourceSummary

from aiperf_exporter_server_metrics.families import (
    COUNTER,
    EDGES,
    GAUGE,
    HISTOGRAM,
    MetricFamily,
    families,
    phase_of,
)

SCHEMA_VERSION = "1.0"
_COLUMNS = {"gauge": GAUGE, "counter": COUNTER, "histogram": HISTOGRAM}


def comment(summary: Summary) -> str:
    """The six lines before the tables."""
    return (
        "# AIPerf Server Metrics Export (CSV)\n"
        f"# aiperf_version: {summary.version}\n"
        f"# schema_version: {SCHEMA_VERSION}\n"
        f"# benchmark_id: {summary.run_id}\n"
        "# Tables by type of metric, with an empty line between them; statistics are of the profiling phase.\n"
        "#\n"
    )


def rows(summary: Summary, source: SourceSummary) -> Iterator[list[str]]:
    """The tables, an empty row between two."""
    phase = phase_of(summary, "profiling")
    known = [] if phase is None else families(summary, source, phase, sliced=True)
    tables = [*(_table(kind, [each for each in known if each.kind == kind]) for kind in _COLUMNS)]
    tables.append(_infos([each for each in known if each.kind == "info"]))
    for number, table in enumerate(table for table in tables if table):
        if number:
            yield []
        yield from table


def _table(kind: str, known: Sequence[MetricFamily]) -> list[list[str]]:
    if not known:
        return []
    labels, columns = label_columns(known), _COLUMNS[kind]
    histogram = kind == "histogram"
    header = ["Endpoint", "Type", "Metric", "Unit", *columns, *labels, "Description"]
    found = []
    for family in known:
        for series in family.series:
            cells = [endpoint(series.endpoint), kind, family.name, family.unit]
            cells += [_cell(series.stats.get(name)) for name in columns]
            cells += [*(series.labels.get(label, "") for label in labels), family.help]
            if histogram:
                cells += [";".join(f"{bound}={_cell(count)}" for bound, count in series.buckets.items())]
                cells += [_cell(series.stats.get(name)) for name in EDGES]
            pattern = tuple(label not in series.labels for label in labels)
            found.append((pattern, family.name, series.endpoint, sorted(series.labels.items()), cells))
    found.sort(key=lambda row: row[:4])
    return [[*header, *(("buckets", *EDGES) if histogram else ())], *(cells for *_, cells in found)]


def _infos(known: Sequence[MetricFamily]) -> list[list[str]]:
    found = sorted(
        [endpoint(series.endpoint), family.name, key, value, family.help]
        for family in known
        for series in family.series
        for key, value in series.labels.items()
    )
    found.sort(key=lambda row: (row[1], row[0], row[2]))
    return [["Endpoint", "Metric", "Key", "Value", "Description"], *found] if found else []


def label_columns(known: Sequence[MetricFamily]) -> list[str]:
    """Labels that occur together stand together, groups by their first name; inside a group those of one metric come first."""
    sets = [frozenset(series.labels) for family in known for series in family.series]
    groups: list[set[str]] = []
    for labels in map(set, sets):
        apart = [group for group in groups if not group & labels]
        together = labels.union(*(group for group in groups if group & labels))
        groups = [*apart, together] if together else groups
    users: dict[str, set[str]] = {}
    for family in known:
        for label in set().union(*(series.labels for series in family.series)):
            users.setdefault(label, set()).add(family.name)
    ordered = sorted(groups, key=lambda group: min(group, default=""))
    return [label for group in ordered for label in sorted(group, key=lambda label: (len(users[label]) > 1, label))]


def endpoint(url: str) -> str:
    """Host, port and path without a final ``/metrics``."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path.removesuffix('/metrics')}" if parts.netloc else url


def _cell(value: float | None) -> str:
    """The shortest text that reads as the same number; whole numbers without a point."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(value)
