"""What the tables are tried with.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from types import SimpleNamespace

from aiperf.testing import BatchExporterContract

from aiperf_exporter_parquet import ChunkTable, RequestTable


class RequestTableContract(BatchExporterContract):
    exporter = RequestTable


class ChunkTableContract(BatchExporterContract):
    exporter = ChunkTable
    options = SimpleNamespace(parquet_chunks=True)
