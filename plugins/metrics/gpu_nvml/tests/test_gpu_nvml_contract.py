"""The source keeps the contract of telemetry sources, with a library of its own."""

from __future__ import annotations

from aiperf_metric_gpu_nvml.contract import GpuNvmlContract


class TestItKeepsTheContract(GpuNvmlContract):
    pass
