"""The option of all files of server metrics."""

from __future__ import annotations

from aiperf_exporter_server_metrics.options import FormatOptions


class ParquetOptions(FormatOptions):
    """The table is written where the formats have ``parquet``."""
