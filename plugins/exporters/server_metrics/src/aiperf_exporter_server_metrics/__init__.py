"""What servers said of themselves beside the load, as JSON, CSV and JSON lines."""

from __future__ import annotations

import csv
from abc import abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.exporter import visible
from aiperf.sdk.summary import SourceSummary

from aiperf_exporter_server_metrics.families import SOURCE, source_of
from aiperf_exporter_server_metrics.options import FormatOptions


class ServerMetricsFile(SummaryExporter[FormatOptions]):
    """A file about the servers' metrics; not written where no page was read, and one of an earlier run is taken away."""

    label: ClassVar[str]
    kind: ClassVar[str]
    format: ClassVar[str]

    def wanted(self) -> bool:
        return self.options is not None and self.format in self.options.server_metrics_formats

    def planned(self) -> Collection[str]:
        typed = self.target.config.get("plugins", {}).get(f"telemetry:{SOURCE}", {})
        return self.files if typed.get("server_metrics_enabled", True) else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path, source = self.target.file(self.kind), source_of(summary)
        if source is None:
            path.unlink(missing_ok=True)
            return []
        with atomic(path) as draft:
            self.write(draft, summary, source)
        return [Artifact(self.label, path)]

    @abstractmethod
    def write(self, path: Path, summary: Summary, source: SourceSummary) -> None:
        """The file; the source has series."""


class ServerMetricsJson(ServerMetricsFile):
    """``server_metrics_export.json``."""

    label, kind, format = "Server Metrics JSON Export", "server_metrics.json", "json"
    files = {kind: "{prefix_}server_metrics{_export}.json"}
    early = True

    def write(self, path: Path, summary: Summary, source: SourceSummary) -> None:
        from aiperf_exporter_server_metrics.document import document

        path.write_bytes(visible(msgspec.json.format(msgspec.json.encode(document(summary, source)), indent=2)) + b"\n")


class ServerMetricsCsv(ServerMetricsFile):
    """``server_metrics_export.csv``."""

    label, kind, format = "Server Metrics CSV Export", "server_metrics.csv", "csv"
    files = {kind: "{prefix_}server_metrics{_export}.csv"}
    early = True

    def write(self, path: Path, summary: Summary, source: SourceSummary) -> None:
        from aiperf_exporter_server_metrics.tables import comment, rows

        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(comment(summary))
            csv.writer(file, lineterminator="\r\n").writerows(rows(summary, source))


class ServerMetricsLines(ServerMetricsFile):
    """``server_metrics_export.jsonl``: from the journal."""

    label, kind, format = "Server Metrics JSONL Export", "server_metrics.jsonl", "jsonl"
    files = {kind: "{prefix_}server_metrics{_export}.jsonl"}

    def write(self, path: Path, summary: Summary, source: SourceSummary) -> None:
        from aiperf_exporter_server_metrics.scrapes import lines

        with path.open("wb") as file:
            if self.target.journal is not None:
                file.writelines(visible(msgspec.json.encode(line)) + b"\n" for line in lines(self.target))


__all__ = ["ServerMetricsCsv", "ServerMetricsFile", "ServerMetricsJson", "ServerMetricsLines"]
