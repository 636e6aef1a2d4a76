"""The per-request table, and on request every chunk, as Parquet.  pyarrow is imported where a file is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import BatchExporter

if TYPE_CHECKING:
    from aiperf import RecordBatch

from aiperf_exporter_parquet.options import ChunkOptions


class RequestTable(BatchExporter):
    """``profile_export.parquet``: a row for each line of the per-request file.  Parts hold the arrays of each batch."""

    label = "Parquet Export"
    kind = "parquet"
    files = {kind: "{prefix}.parquet"}

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_parquet.parts import block  # numpy: not in the parent before the load

        return block(batch, self.target)

    def prepare_join(self) -> None:
        import aiperf_exporter_parquet.requests  # noqa: F401

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        from aiperf_exporter_parquet.requests import table  # pyarrow

        return table(parts, self.target)


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

    def prepare_join(self) -> None:
        import aiperf_exporter_parquet.chunks  # noqa: F401

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        from aiperf_exporter_parquet.chunks import table

        return table(parts, self.target)
