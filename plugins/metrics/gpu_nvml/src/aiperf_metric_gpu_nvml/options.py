"""The shared options, and whether they name this source."""

from __future__ import annotations

from aiperf_gpus.items import PYNVML
from aiperf_gpus.options import GpuOptions


class NvmlOptions(GpuOptions):
    @property
    def asked(self) -> bool:
        """Whether ``--gpu-telemetry pynvml`` was given."""
        return self.local == PYNVML
