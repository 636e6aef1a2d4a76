"""This machine's NVIDIA GPUs, asked by ``--gpu-telemetry pynvml``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Point, TelemetryContext, TelemetrySource
from aiperf_gpus.options import interval_s

from aiperf_metric_gpu_nvml.options import NvmlOptions

if TYPE_CHECKING:
    from aiperf_metric_gpu_nvml.device import Device

NAME = "pynvml://localhost"


class GpuNvml(TelemetrySource[NvmlOptions]):
    """All GPUs that the driver shows, and their MIG instances.  A call that fails leaves out its own series alone."""

    name = NAME

    def __init__(self, options: NvmlOptions, context: TelemetryContext) -> None:
        super().__init__(options, context)
        self.interval_s = interval_s()
        self._devices: list[Device] = []

    def start(self) -> None:
        from aiperf_metric_gpu_nvml.device import driver, found

        driver()
        self._devices = found()
        if not self._devices:
            raise AiperfError(
                "--gpu-telemetry pynvml: the NVIDIA driver of this machine shows no GPU; drop it, or name a DCGM"
                " exporter, --gpu-telemetry HOST:9400"
            )

    def sample(self) -> Iterable[Point]:
        points = [point for device in self._devices for point in device.points()]
        if not points:
            raise AiperfError("no GPU answers any more: the driver was reset, or each GPU is lost")
        return points

    def stop(self) -> None:
        from aiperf_metric_gpu_nvml.device import close

        close(self._devices)
        self._devices = []


__all__ = ["NAME", "GpuNvml"]
