"""The exporter against a run with a page of metrics.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf_exporter_server_metrics.contract import FileContract

from aiperf_exporter_server_metrics_parquet import ServerMetricsParquet


class ParquetContract(FileContract):
    exporter = ServerMetricsParquet
