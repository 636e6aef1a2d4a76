"""What the chunk table can be told."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class ChunkOptions(Options):
    parquet_chunks: bool = option("--parquet-chunks", default=False, group="Output",
        help="Also write a Parquet table with a row for every chunk of every answer.")  # fmt: skip
