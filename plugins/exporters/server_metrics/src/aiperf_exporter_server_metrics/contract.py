"""The exporters against a run with a page of metrics.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

from aiperf import Point, SeriesKind, Summary, Target
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Moment, SourceHeader, TargetHeader
from aiperf.sdk.summary import SeriesSummary, SourceSummary, TargetSummary
from aiperf.testing import SummaryExporterContract
from msgspec.structs import replace

from aiperf_exporter_server_metrics import ServerMetricsCsv, ServerMetricsJson, ServerMetricsLines
from aiperf_exporter_server_metrics.families import SOURCE
from aiperf_exporter_server_metrics.options import FORMATS, FileOptions

_PAGE = "http://127.0.0.1:9/metrics"


class FileContract(SummaryExporterContract):
    """A run with one counter, in its summary and in its journal."""

    options = FileOptions(server_metrics_formats=list(FORMATS))

    def summary(self) -> Summary:
        jobs = SeriesSummary(SOURCE, 0, "jobs_total", "counter", "count", {}, "Jobs", {"total": 3.0, "rate": 1.5}, target=_PAGE)
        source = SourceSummary(SOURCE, "its contract", "1", 0.3, 2, 0, 0, (jobs,), targets=(TargetSummary(_PAGE, 0.3, 2),))
        return replace(super().summary(), telemetry=(source,))

    def target(self, directory: Path) -> Target:
        return Target(directory, journal=directory / "journal")

    def prepare(self, directory: Path) -> None:
        journal = directory / "journal"
        journal.mkdir()
        ref = PluginRef("telemetry", SOURCE, "its contract", "its contract", "1")
        writer = SampleWriter(sample_path(journal, 0), SourceHeader(ref, 0.3, (TargetHeader(_PAGE, 0.3),)))
        start_ns = super().summary().start_ns
        for number in (1, 2):
            jobs = Point("jobs_total", float(number), SeriesKind.COUNTER, "count")
            writer.add([jobs], Moment(number, start_ns + number, 1, 0))
        writer.close()


class JsonContract(FileContract):
    exporter = ServerMetricsJson


class CsvContract(FileContract):
    exporter = ServerMetricsCsv


class LinesContract(FileContract):
    exporter = ServerMetricsLines
