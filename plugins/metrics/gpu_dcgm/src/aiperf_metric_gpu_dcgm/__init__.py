"""NVIDIA GPUs from DCGM exporters: the two default ones of this machine in every run, and those of ``--gpu-telemetry``."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Absent, TelemetryContext, TelemetrySource, TelemetryTarget
from aiperf_gpus.options import interval_s

from aiperf_metric_gpu_dcgm.options import DcgmOptions, default_urls, timeout_s
from aiperf_metric_gpu_dcgm.ports import listens


class GpuDcgm(TelemetrySource[DcgmOptions]):
    """A target for each exporter, the defaults first.  A GPU that two of them show counts once, by its UUID."""

    def __init__(self, options: DcgmOptions, context: TelemetryContext) -> None:
        super().__init__(options, context)
        self._defaults: list[str] = []
        """The default pages at whose ports something listens."""

    def start(self) -> None:
        """
        Raises:
            Absent: Nothing listens at the default ports, and the user asked for none: there is nothing to say.
            AiperfError: The user asked for GPUs.
        """
        urls = default_urls()
        self._defaults = [url for url in urls if listens(url)]
        if not self._defaults and not self.options.items.urls:
            if self.options.gpu_telemetry is None:
                raise Absent("")
            where = " or ".join(url.partition("://")[2].removesuffix("/metrics") for url in urls) or "no address"
            raise AiperfError(f"--gpu-telemetry: no DCGM exporter listens at {where}; name one, --gpu-telemetry HOST:9400, or"
                " pynvml for the GPUs of this machine")

    def targets(self) -> Sequence[TelemetryTarget]:
        from aiperf_metric_gpu_dcgm.exporter import DcgmTarget, Owners, pages
        from aiperf_metric_gpu_dcgm.fields import fields

        known, owners, items = fields(self.options.items.files), Owners(), self.options.items
        return [
            DcgmTarget(address, self.context, interval_s(), timeout_s(), known, owners, asked=asked)
            for address, asked in pages(self._defaults, items.urls)
        ]


__all__ = ["GpuDcgm"]
