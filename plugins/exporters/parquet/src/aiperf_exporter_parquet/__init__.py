"""The per-request table, and on request every chunk, as Parquet.  pyarrow is imported where a file is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import AiperfError, Artifact, BatchExporter, Summary, SummaryExporter, atomic

if TYPE_CHECKING:
    from aiperf import RecordBatch

from aiperf_exporter_parquet.options import ChunkOptions


class RequestTable(SummaryExporter):
    """``profile_export.parquet``: a row for each line of the per-request file."""

    level = "records"
    files = {"parquet": "{prefix}.parquet"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_parquet.requests import write

        records, path = self.target.file("jsonl"), self.target.file("parquet")
        if not records.exists():
            hint = "the records exporter failed, or is switched off"
            raise AiperfError(f"{records} is not there, whose lines the table has", hint)
        with atomic(path) as draft:
            write(records, draft)
        return [Artifact("Parquet Export", path)]


class ChunkTable(BatchExporter[ChunkOptions]):
    """``profile_export_chunks.parquet``: a row for every arrival of content.  Parts hold rows of fixed width."""

    label = "Parquet Chunk Export"
    kind = "chunks.parquet"
    files = {kind: "{prefix}_chunks.parquet"}

    def wanted(self) -> bool:
        return self.options is not None and self.options.parquet_chunks

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_parquet.chunks import rows  # numpy: not in the parent, which only joins parts

        return rows(batch, self.target)

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        from aiperf_exporter_parquet.chunks import table

        return table(parts, self.target)
