"""The shared options, and whether they name this source."""

from __future__ import annotations

from aiperf_gpus.items import AMDSMI
from aiperf_gpus.options import GpuOptions


class AmdOptions(GpuOptions):
    @property
    def asked(self) -> bool:
        """Whether ``--gpu-telemetry amdsmi`` was given."""
        return self.local == AMDSMI


__all__ = ["AmdOptions"]
