"""The per-request file as a table: read twice, first for its columns, then for its rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

_GROUP_ROWS = 1 << 14
_PART_ROWS = 1 << 10
"""Rows that are Python objects at a time: they take some 15 KB each, and a hundredth of that as a table."""
_ERROR = {"error_code": pa.int64(), "error_type": pa.string(), "error_message": pa.string()}


class _Value(Struct):
    value: Any
    unit: str = ""


class _Record(Struct):
    metadata: dict[str, Any]
    metrics: dict[str, _Value]
    error: dict[str, Any] | None = None


def write(records: Path, to: Path) -> None:
    """Write the table of *records* to *to*."""
    schema = _schema(records)
    with pq.ParquetWriter(to, schema, compression="zstd") as writer:
        lines = _read(records)
        while group := list(islice(_parts(lines, schema), _GROUP_ROWS // _PART_ROWS)):
            writer.write_table(pa.concat_tables(group))


def _parts(lines: Iterator[_Record], schema: pa.Schema) -> Iterator[pa.Table]:
    while rows := [_row(record) for record in islice(lines, _PART_ROWS)]:
        yield pa.Table.from_pylist(rows, schema=schema)


def _read(records: Path) -> Iterator[_Record]:
    decode = msgspec.json.Decoder(_Record).decode
    with records.open("rb") as file:
        for line in file:
            yield decode(line)


def _schema(records: Path) -> pa.Schema:
    """Columns in the order in which the file first has them: metadata, metrics, then the error."""
    metadata: dict[str, pa.DataType] = {}
    metrics: dict[str, pa.Field] = {}
    for record in _read(records):
        for name, value in record.metadata.items():
            metadata.setdefault(name, _type(value))
        for tag, found in record.metrics.items():
            wide = isinstance(found.value, list)
            if tag not in metrics or (wide and not pa.types.is_list(metrics[tag].type)):
                kind = pa.list_(pa.float64()) if wide else pa.float64()
                metrics[tag] = pa.field(tag, kind, metadata={"unit": found.unit})
    fields = [pa.field(name, kind) for name, kind in metadata.items()]
    return pa.schema([*fields, *metrics.values(), *(pa.field(name, kind) for name, kind in _ERROR.items())])


def _type(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    return pa.int64() if isinstance(value, int) else pa.string()


def _row(record: _Record) -> dict[str, Any]:
    row = dict(record.metadata)
    row |= {tag: found.value for tag, found in record.metrics.items()}
    if record.error is not None:
        row |= {f"error_{name}": record.error.get(name) for name in ("code", "type", "message")}
    return row
