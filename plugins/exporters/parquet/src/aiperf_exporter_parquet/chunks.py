"""Chunks: rows of fixed width on their way, one row group at a time into the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from aiperf import RecordBatch, Target
from aiperf.sdk.columns import BOUND_COLUMNS

from aiperf_exporter_parquet.about import about
from aiperf_exporter_parquet.sink import PieceFile

_ROW = np.dtype([
    ("phase", "<i4"), ("worker", "<i4"), ("request", "<i8"), ("session_num", "<i8"), ("turn", "<i4"), ("chunk", "<i4"),
    ("at_ns", "<i8"), ("gap_ns", "<i8"),
])  # fmt: skip
_COLUMNS = {"phase": "phase", "worker": "shard", "request": "request", "session_num": "n", "turn": "turn"}
_UNKNOWN = -1
"""A gap (ns) that is not known, until it becomes a null."""
_GROUP_ROWS = 1 << 18


def rows(batch: RecordBatch, target: Target) -> bytes:
    """The batch's chunks, by request."""
    instants, gaps = batch.lists("chunk_ns"), batch.lists("gap_ns")
    lengths = instants.offsets[1:] - instants.offsets[:-1]
    found = np.empty(len(instants.values), dtype=_ROW)
    for field, column in _COLUMNS.items():
        found[field] = np.repeat(np.nan_to_num(batch[column]).astype(np.int64), lengths)
    found["chunk"] = np.arange(len(found)) - np.repeat(instants.offsets[:-1], lengths)
    found["at_ns"] = instants.values.astype(np.int64) + target.started_wall_ns
    found["gap_ns"] = _UNKNOWN
    # A gap is told by the instant that ends it; in front of a merged read there is none.
    bounds = [batch.lists(name).values for name in BOUND_COLUMNS[:2] if name in batch.columns]
    known = bounds[0] == bounds[1] if bounds else np.ones(len(gaps.values), dtype=bool)
    owners = np.repeat(np.arange(len(batch)), gaps.offsets[1:] - gaps.offsets[:-1])
    ends = np.repeat(np.arange(len(batch)), lengths)
    place = np.searchsorted(_keys(ends, instants.values), _keys(owners[known], gaps.at_ns[known]))
    found["gap_ns"][place] = gaps.values[known].astype(np.int64)
    return found.tobytes()


def _keys(owners: np.typing.NDArray[np.int64], at_ns: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.void]:
    """(request, instant) in an order that searchsorted knows: requests ascend, instants ascend within."""
    keys = np.empty(len(owners), dtype=[("owner", "<i8"), ("at", "<f8")])
    keys["owner"], keys["at"] = owners, at_ns
    return keys


def table(parts: Sequence[Path], target: Target) -> Iterator[bytes]:
    """The file, some bytes at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([
        ("phase_name", text), ("worker_id", text), ("request", pa.int64()), ("session_num", pa.int64()),
        ("turn_index", pa.int32()), ("chunk", pa.int32()), ("at_ns", pa.int64()), ("gap_ns", pa.int64()),
    ], metadata=about(target))  # fmt: skip
    sink = PieceFile()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for part in parts:
            with part.open("rb") as file:
                while len(block := np.frombuffer(file.read(_GROUP_ROWS * _ROW.itemsize), dtype=_ROW)):
                    workers, which = np.unique(block["worker"], return_inverse=True)
                    names = [f"worker-{worker}" for worker in workers.tolist()]
                    writer.write_table(pa.table([
                        pa.DictionaryArray.from_arrays(pa.array(block["phase"]), pa.array(target.phases)),
                        pa.DictionaryArray.from_arrays(pa.array(which.astype(np.int32)), pa.array(names)),
                        *(pa.array(block[name]) for name in ("request", "session_num", "turn", "chunk", "at_ns")),
                        pa.array(block["gap_ns"], mask=block["gap_ns"] == _UNKNOWN),
                    ], schema=schema))  # fmt: skip
                    yield sink.taken()
    yield sink.taken()
