"""The shared options: with ``--gpu-telemetry`` the tables are always shown."""

from __future__ import annotations

from aiperf_gpus.options import GpuOptions


class TableOptions(GpuOptions):
    """Without ``--gpu-telemetry`` the tables need ``-v``."""


__all__ = ["TableOptions"]
