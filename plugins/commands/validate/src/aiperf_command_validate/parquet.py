"""The table of requests compared with the per-request file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf_command_validate.faults import Faults
from aiperf_command_validate.records import Records
from aiperf_command_validate.values import Values

_BATCH = 4096
"""Rows that are read together."""


def compare(path: Path, records: Records, name: str, faults: Faults) -> None:
    """The file has a row for each line; of each metric as many values in the profiling phases, with the same sum and extremes.

    Raises:
        ImportError: pyarrow isn't installed.
    """
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            rows, columns = file.metadata.num_rows, _values(file, records.metrics)
    except (ArrowException, OSError) as error:
        faults.add(name, f"is not Parquet: {error}")
        return
    if rows != records.lines:
        faults.add(name, f"has {rows:,} rows, the per-request file {records.lines:,} lines")
    for tag, values in records.metrics.items():
        if tag not in columns:
            faults.add(name, f"has no column {tag}", kind="missing columns")
        elif not values.like(columns[tag]):
            faults.add(name, f"the column {tag} has other values than the per-request file", kind="other values")


def _values(file: Any, like: dict[str, Values]) -> dict[str, Values]:
    """The profiling requests' values of those metrics that have a column."""
    there = [tag for tag in like if tag in file.schema_arrow.names]
    columns = {tag: Values(listed=like[tag].listed) for tag in there}
    for batch in file.iter_batches(_BATCH, columns=["benchmark_phase", *there]):
        rows = batch.to_pydict()
        for place, phase in enumerate(rows["benchmark_phase"]):
            if phase != "profiling":
                continue
            for tag in there:
                value = rows[tag][place]
                if value is not None:
                    columns[tag].add(value if isinstance(value, list) else [value])
    return columns
