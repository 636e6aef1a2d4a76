"""All requests in a database.  The reducers write rows as lines, and the parent inserts them at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from aiperf import RecordBatch
from aiperf.sdk.exporter import BatchExporter

_TABLE = "CREATE TABLE requests (id TEXT, started_s REAL, latency_ms REAL, output_tokens INTEGER, error TEXT)"
_INSERT = "INSERT INTO requests VALUES (?, ?, ?, ?, ?)"


class Archive(BatchExporter):
    kind = "archive.sqlite"
    label = "Archive"
    files = {"archive.sqlite": "{prefix_}archive.sqlite"}

    def rows(self, batch: RecordBatch) -> bytes:
        latency_ms = np.where(batch.valid, batch["ended_ns"] - batch["started_ns"], np.nan) / 1e6
        numbers = (batch["started_ns"] / 1e9, latency_ms, batch["output_tokens"])
        columns = [batch.texts["request_id"], *(column.tolist() for column in numbers), batch.texts["error"]]
        # JSON has no NaN: an absent number becomes NULL.
        return b"".join(msgspec.json.encode(row) + b"\n" for row in zip(*columns, strict=True))

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        with sqlite3.connect(":memory:") as database:
            database.execute(_TABLE)
            for part in parts:
                with part.open("rb") as lines:
                    database.executemany(_INSERT, map(msgspec.json.decode, lines))
        yield database.serialize()
        database.close()
