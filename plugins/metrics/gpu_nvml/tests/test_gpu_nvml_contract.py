"""The source keeps the contract of telemetry sources, with a library of its own."""

from __future__ import annotations

from aiperf_metric_gpu_nvml.contract import GpuNvmlContract, NvmlElsewhereContract


class TestItKeepsTheContract(GpuNvmlContract):
    pass


class TestTheWarningKeepsTheContract(NvmlElsewhereContract):
    pass
