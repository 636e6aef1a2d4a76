"""The table: columns of many readings at once."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from aiperf import Summary, Target
from aiperf.sdk.series import SeriesHeader
from aiperf.sdk.summary import SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf_exporter_server_metrics.families import phase_of
from aiperf_exporter_server_metrics.scrapes import Scrape, Scrapes
from msgspec import Struct

from aiperf_exporter_server_metrics_parquet.growth import Growth

SCHEMA_VERSION = "1.0"
_ABOUT = ("endpoint_url", "metric_name", "metric_type", "unit", "description")
_NUMBERS = ("value", "sum", "count", "bucket_le", "bucket_count")
RESERVED = frozenset((*_ABOUT, "timestamp_ns", *_NUMBERS))
_ROWS = 200_000
"""Rows of a group."""
_TYPES = {SeriesKind.INFO: "gauge", SeriesKind.SUMMARY: "gauge"}


class _Layout(Struct, frozen=True):
    """The columns of one set of series that stay: texts by column.  rows: of each series, how many."""

    columns: dict[str, Any]
    rows: int


def write(path: Path, target: Target, summary: Summary, source: SourceSummary) -> None:
    """Write the table of the profiling phase."""
    journal, phase = target.journal, phase_of(summary, "profiling")
    labels = sorted({label for series in source.series for label in series.labels} - RESERVED)
    schema = _schema(labels).with_metadata(_metadata(summary, source, labels, phase))
    with pq.ParquetWriter(path, schema, compression="snappy") as file:
        window = next((each for each in summary.phases if each.index == phase), None)
        if journal is None or window is None:
            return
        parts: list[Any] = []
        rows = 0
        for part in _parts(Scrapes(journal), window.index, window.start_ns, labels, schema):
            parts.append(part)
            rows += part.num_rows
            if rows >= _ROWS:
                file.write_table(pa.concat_tables(parts))
                parts, rows = [], 0
        if parts:
            file.write_table(pa.concat_tables(parts))


def _schema(labels: list[str]) -> Any:
    texts = [pa.field(name, pa.string()) for name in _ABOUT]
    numbers = [pa.field(name, pa.string() if name == "bucket_le" else pa.float64()) for name in _NUMBERS]
    more = [pa.field(name, pa.string()) for name in labels]
    return pa.schema([*texts, pa.field("timestamp_ns", pa.int64()), *more, *numbers])


def _parts(scrapes: Scrapes, phase: int, start_ns: int, labels: list[str], schema: Any) -> Iterator[Any]:
    """The rows of each reading with a change, from the begin of the phase to that of the next."""
    growth, layouts = Growth(), dict[tuple[str, tuple[int, ...]], _Layout]()
    for scrape in scrapes:
        if scrape.moment.phase > phase:
            continue
        series = [scrapes.series[number] for number in scrape.values]
        values = list(map(growth.take, series, scrape.values.values()))
        if scrape.moment.wall_ns < start_ns:
            growth.begin(scrape.values)
        elif scrape.updated:
            key = scrape.endpoint, tuple(scrape.values)
            layout = layouts.get(key)
            if layout is None:
                layout = layouts[key] = _laid_out(scrape.endpoint, series, labels)
            yield _part(scrape, zip(series, values, strict=True), layout, schema)


def _laid_out(endpoint: str, series: list[SeriesHeader], labels: list[str]) -> _Layout:
    columns: dict[str, list[str | None]] = {name: [] for name in (*_ABOUT, *labels, "bucket_le")}
    for header in series:
        bounds = [*map(repr, header.bounds), "+Inf"] if header.kind is SeriesKind.HISTOGRAM else [None]
        about = (endpoint, header.name, _TYPES.get(header.kind, header.kind.value), header.unit, header.help)
        for name, text in zip(_ABOUT, about, strict=True):
            columns[name] += [text] * len(bounds)
        for label in labels:
            columns[label] += [header.labels.get(label)] * len(bounds)
        columns["bucket_le"] += bounds
    arrays = {name: pa.array(texts, pa.string()) for name, texts in columns.items()}
    return _Layout(arrays, len(columns["bucket_le"]))


def _part(scrape: Scrape, values: Iterable[tuple[SeriesHeader, list[float]]], layout: _Layout, schema: Any) -> Any:
    numbers = {name: np.full(layout.rows, np.nan) for name in ("value", "sum", "count", "bucket_count")}
    row = 0
    for header, value in values:
        if header.kind is SeriesKind.HISTOGRAM:
            end = row + len(value) - 1
            numbers["sum"][row:end], numbers["count"][row:end] = value[0], value[-1]
            numbers["bucket_count"][row:end] = value[1:]
            row = end
        else:
            numbers["value"][row] = value[0]
            row += 1
    columns = {
        **layout.columns, "timestamp_ns": pa.array(np.full(layout.rows, scrape.moment.wall_ns, np.int64)),
        **{name: pa.array(column, mask=np.isnan(column)) for name, column in numbers.items()},
    }  # fmt: skip
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _metadata(summary: Summary, source: SourceSummary, labels: list[str], phase: int | None) -> dict[str, str]:
    window = next((each for each in summary.phases if each.index == phase), None)
    start, end = (0, 0) if window is None else (window.start_ns, window.end_ns)
    kinds: dict[str, set[str]] = {}
    for series in source.series:
        kinds.setdefault(_TYPES.get(SeriesKind(series.kind), series.kind), set()).add(series.name)
    endpoints = [target.name for target in source.targets]
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION, "version": summary.version, "benchmark_id": summary.run_id,
        "export_timestamp_utc": summary.end_ns, "exporter": "aiperf-exporter-server-metrics-parquet",
        "python_version": platform.python_version(), "pyarrow_version": pa.__version__,
        "time_filter_start_ns": start, "time_filter_end_ns": end,
        "profiling_duration_ns": end - start, "profiling_duration_seconds": (end - start) / 1e9,
        "endpoint_urls": endpoints, "endpoint_count": len(endpoints), "label_columns": labels, "label_count": len(labels),
        "metric_count": sum(map(len, kinds.values())),
        "metric_type_counts": {kind: len(names) for kind, names in sorted(kinds.items())},
        "input_config": summary.config,
        "schema_note": "counters and histograms have their growth since the profiling phase began",
    }  # fmt: skip
    return {f"aiperf.{name}": value if isinstance(value, str) else _json(value) for name, value in fields.items()}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
