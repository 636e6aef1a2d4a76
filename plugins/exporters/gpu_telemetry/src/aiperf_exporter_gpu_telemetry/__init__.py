"""Each sample of each GPU, a line of JSON: ``gpu_telemetry_export.jsonl``."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.exporter import visible
from aiperf_gpus import has_gpus

from aiperf_exporter_gpu_telemetry.options import LinesOptions

_KIND = "gpu_telemetry.jsonl"


class GpuTelemetryLines(SummaryExporter[LinesOptions]):
    """Not written where no GPU was sampled, and one of an earlier run is taken away."""

    files = {_KIND: "{prefix_}gpu_telemetry{_export}.jsonl"}

    def planned(self) -> Collection[str]:
        """With GPUs that were asked for; whether exporters of this machine are there, is not known before."""
        asked = self.options is not None and self.options.gpu_telemetry is not None and self.options.gpu_telemetry_enabled
        return self.files if asked else ()

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file(_KIND)
        if self.target.journal is None or not has_gpus(summary):
            path.unlink(missing_ok=True)
            return []
        from aiperf_exporter_gpu_telemetry.lines import lines

        with atomic(path) as draft, draft.open("wb") as file:
            file.writelines(visible(msgspec.json.encode(line)) + b"\n" for line in lines(self.target.journal))
        return [Artifact("GPU Telemetry JSONL Export", path)]


__all__ = ["GpuTelemetryLines"]
