"""What the tables are tried with: the lines of a run.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
from aiperf.testing import BatchExporterContract, SummaryExporterContract

from aiperf_exporter_parquet import ChunkTable, RequestTable


class RequestTableContract(SummaryExporterContract):
    exporter = RequestTable

    def prepare(self, directory: Path) -> None:
        rows = (
            {
                "metadata": {"session_num": n, "x_request_id": f"r{n}", "was_cancelled": False, "request_start_ns": 10**18 + n},
                "metrics": {"request_latency": {"value": 1.5 + n, "unit": "ms"}},
            }
            for n in range(3)
        )
        self.target(directory).file("jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


class ChunkTableContract(BatchExporterContract):
    exporter = ChunkTable
    options = SimpleNamespace(parquet_chunks=True)
