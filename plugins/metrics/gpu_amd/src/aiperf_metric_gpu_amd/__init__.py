"""This machine's AMD GPUs, asked by ``--gpu-telemetry amdsmi``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Point, TelemetryContext, TelemetrySource
from aiperf_gpus.options import interval_s

from aiperf_metric_gpu_amd.options import AmdOptions

if TYPE_CHECKING:
    from aiperf_metric_gpu_amd.device import AmdDevice

NAME = "amdsmi://localhost"
_INSTEAD = "drop it, or run where the driver and amd-smi-lib are installed"


class GpuAmd(TelemetrySource[AmdOptions]):
    """All GPUs that AMD SMI shows.  A call that fails leaves out its own series alone."""

    name = NAME

    def __init__(self, options: AmdOptions, context: TelemetryContext) -> None:
        super().__init__(options, context)
        self.interval_s = interval_s()
        self._devices: list[AmdDevice] = []

    def start(self) -> None:
        """
        Raises:
            AiperfError: There is no library, or no GPU.
        """
        from aiperf_metric_gpu_amd.device import LibraryError, found

        try:
            self._devices = found()
        except LibraryError as error:
            raise AiperfError(f"--gpu-telemetry amdsmi: {error}; {_INSTEAD}") from error
        if not self._devices:
            raise AiperfError(f"--gpu-telemetry amdsmi: the AMD driver of this machine shows no GPU; {_INSTEAD}")

    def sample(self) -> Iterable[Point]:
        points = [point for device in self._devices for point in device.points()]
        if not points:
            raise AiperfError("no GPU answers any more: the driver was reset, or each GPU is lost")
        return points

    def stop(self) -> None:
        from aiperf_metric_gpu_amd.device import close

        close()
        self._devices = []


__all__ = ["NAME", "GpuAmd"]
