"""The per-request table, put together from the blocks of the reducers: read twice, first for its columns, then for its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from aiperf import Target

from aiperf_exporter_parquet.about import about
from aiperf_exporter_parquet.parts import ABSENT, LENGTHS, Head, Piece
from aiperf_exporter_parquet.sink import PieceFile

_GROUP_ROWS = 1 << 14
_SHORT_BYTES = 1 << 20
"""Parts of fewer bytes are one group mostly: a thread would cost more than it spares."""
_TYPES = {
    "whole": pa.int64(), "instants": pa.int64(), "flags": pa.bool_(), "words": pa.string(), "text": pa.string(),
    "number": pa.float64(), "list": pa.list_(pa.float64()),
}  # fmt: skip
_ERRORS = [pa.field("error_code", pa.int64()), pa.field("error_type", pa.string()), pa.field("error_message", pa.string())]


def table(parts: Sequence[Path], target: Target) -> Iterator[bytes]:
    """The file, some bytes at a time."""
    schema, sink = _schema(parts).with_metadata(about(target)), PieceFile()
    short = sum(part.stat().st_size for part in parts) < _SHORT_BYTES
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        groups = _groups(parts, schema, target.started_wall_ns)
        for _ in map(writer.write_table, groups) if short else _beside(writer.write_table, groups):
            yield sink.taken()
    yield sink.taken()


def _beside(write: Callable[[pa.Table], None], groups: Iterable[pa.Table]) -> Iterator[None]:
    """A thread writes a group of rows while the next one is put together."""
    with ThreadPoolExecutor(1) as thread:
        writing: Future[None] | None = None
        for group in groups:
            if writing is not None:
                yield writing.result()
            writing = thread.submit(write, group)
        if writing is not None:
            yield writing.result()


def _groups(parts: Sequence[Path], schema: pa.Schema, wall_ns: int) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for head, body in _blocks(parts, bodies=True):
        waiting.append(_rows(head, body, schema, wall_ns))
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            rest = pa.concat_tables(waiting)
            while len(rest) >= _GROUP_ROWS:
                yield rest.slice(0, _GROUP_ROWS).combine_chunks()
                rest = rest.slice(_GROUP_ROWS)
            waiting = [rest]
    if any(map(len, waiting)):
        yield pa.concat_tables(waiting).combine_chunks()


def _blocks(parts: Sequence[Path], *, bodies: bool) -> Iterator[tuple[Head, bytes]]:
    """Each block's head and arrays; without *bodies* the arrays are left out."""
    decode = msgspec.msgpack.Decoder(Head).decode
    for part in parts:
        with part.open("rb") as file:
            while lengths := file.read(LENGTHS.size):
                head, body = LENGTHS.unpack(lengths)
                read = decode(file.read(head))
                if bodies:
                    yield read, file.read(body)
                else:
                    yield read, b""
                    file.seek(body, 1)


def _schema(parts: Sequence[Path]) -> pa.Schema:
    """Columns in the order in which requests first have them: metadata, metrics, then the error."""
    metadata: dict[str, pa.Field] = {}
    metrics: dict[str, pa.Field] = {}
    for head, _ in _blocks(parts, bodies=False):
        for piece in head.metadata:
            metadata.setdefault(piece.name, pa.field(piece.name, _TYPES[piece.kind]))
        for piece in head.metrics:
            metrics.setdefault(piece.name, pa.field(piece.name, _TYPES[piece.kind], metadata={"unit": piece.unit}))
    return pa.schema([*metadata.values(), *metrics.values(), *_ERRORS])


def _rows(head: Head, body: bytes, schema: pa.Schema, wall_ns: int) -> pa.Table:
    known = {piece.name: piece for piece in (*head.metadata, *head.metrics, *head.errors)}
    columns = (
        _array(known[name], body, wall_ns) if name in known else pa.nulls(head.count, kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    )
    return pa.table(list(columns), schema=schema)


def _array(piece: Piece, body: bytes, wall_ns: int) -> pa.Array:
    first = np.frombuffer(body[piece.at : piece.at + piece.sizes[0]], _NUMPY.get(piece.kind, "<f8"))
    if piece.kind == "flags":
        return pa.array(first.astype(bool))
    if piece.kind == "words":
        if (first == first[0]).all():  # a cast imports pyarrow.compute: 0.1 s
            return pa.repeat(pa.scalar(piece.words[first[0]], pa.string()), len(first))
        return pa.DictionaryArray.from_arrays(pa.array(first), pa.array(piece.words, pa.string())).cast(pa.string())
    if piece.kind in ("text", "list"):
        return _lengths(piece, first, memoryview(body)[piece.at + piece.sizes[0] :][: piece.sizes[1]])
    absent = np.isnan(first)
    if piece.kind == "number":
        return pa.array(first, mask=absent)
    whole = np.rint(np.where(absent, 0, first)).astype(np.int64)
    return pa.array(whole + wall_ns if piece.kind == "instants" else whole, mask=absent)


def _lengths(piece: Piece, lengths: Any, flat: memoryview) -> pa.Array:
    """Texts or lists, one behind the other in *flat*."""
    absent = lengths == ABSENT
    offsets = np.concatenate(([0], np.cumsum(np.where(absent, 0, lengths)))).astype(np.int32)
    present = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    if piece.kind == "text":
        return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(flat), present)
    values = pa.array(np.frombuffer(flat, "<f8"))
    return pa.Array.from_buffers(_TYPES["list"], len(lengths), [present, pa.py_buffer(offsets)], children=[values])


_NUMPY = {"flags": "u1", "words": "<i4", "text": "<i4", "list": "<i4"}
