"""The exporter against a run with a GPU.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

from aiperf import Summary, Target
from aiperf.parts.samples import SampleWriter, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Moment, SourceHeader, TargetHeader
from aiperf.sdk.summary import SeriesSummary, SourceSummary, TargetSummary
from aiperf.testing import SummaryExporterContract
from aiperf_gpus.series import NVIDIA
from msgspec.structs import replace

from aiperf_exporter_gpu_telemetry import GpuTelemetryLines
from aiperf_exporter_gpu_telemetry.options import LinesOptions

_SOURCE, _PAGE = "gpu_dcgm", "http://node:9400/metrics"
LABELS = {"gpu": "0", "uuid": "GPU-0", "model": "H100", "platform": "nvidia", "hostname": "node"}


class LinesContract(SummaryExporterContract):
    exporter = GpuTelemetryLines
    options = LinesOptions(gpu_telemetry=[_PAGE])

    def summary(self) -> Summary:
        power = SeriesSummary(_SOURCE, 0, "nvidia_power_usage", "gauge", "W", LABELS, "Power", {"avg": 300.0}, target=_PAGE)
        source = SourceSummary(_SOURCE, "its contract", "1", 0.3, 2, 0, 0, (power,), targets=(TargetSummary(_PAGE, 0.3, 2),))
        return replace(super().summary(), telemetry=(source,))

    def target(self, directory: Path) -> Target:
        return Target(directory, journal=directory / "journal")

    def prepare(self, directory: Path) -> None:
        journal = directory / "journal"
        journal.mkdir()
        ref = PluginRef("telemetry", _SOURCE, "its contract", "its contract", "1")
        writer = SampleWriter(sample_path(journal, 0), SourceHeader(ref, 0.3, (TargetHeader(_PAGE, 0.3),)))
        start_ns = super().summary().start_ns
        for number, code in ((1, 0), (2, 31)):
            points = [NVIDIA["nvidia_power_usage"].point(300.0, LABELS), NVIDIA["nvidia_xid_errors"].point(code, LABELS)]
            writer.add(points, Moment(number, start_ns + number, 1, 0))
        writer.close()
