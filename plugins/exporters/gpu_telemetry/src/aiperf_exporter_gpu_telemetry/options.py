"""The shared options."""

from __future__ import annotations

from aiperf_gpus.options import GpuOptions


class LinesOptions(GpuOptions):
    """The file is there where a GPU was sampled."""


__all__ = ["LinesOptions"]
