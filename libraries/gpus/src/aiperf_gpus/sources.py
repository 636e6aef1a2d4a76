"""The telemetry sources of GPUs."""

from __future__ import annotations

SOURCES = ("gpu_dcgm", "gpu_nvml", "gpu_amd")
"""Names of the telemetry sources of GPUs."""
