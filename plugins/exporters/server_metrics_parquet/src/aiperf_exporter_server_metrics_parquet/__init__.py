"""What servers said of themselves, sample by sample, as Parquet.  pyarrow is imported where a file is written."""

from __future__ import annotations

from pathlib import Path

from aiperf import Summary
from aiperf.sdk.summary import SourceSummary
from aiperf_exporter_server_metrics import ServerMetricsFile


class ServerMetricsParquet(ServerMetricsFile):
    """``server_metrics_export.parquet``: from the journal."""

    label, kind, format = "Server Metrics Parquet Export", "server_metrics.parquet", "parquet"
    files = {kind: "{prefix_}server_metrics{_export}.parquet"}

    def write(self, path: Path, summary: Summary, source: SourceSummary) -> None:
        from aiperf_exporter_server_metrics_parquet.table import write

        write(path, self.target, summary, source)


__all__ = ["ServerMetricsParquet"]
