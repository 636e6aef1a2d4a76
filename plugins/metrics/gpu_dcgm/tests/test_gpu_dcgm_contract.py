"""The source keeps the contract of telemetry sources, at a page of its own."""

from __future__ import annotations

from aiperf_metric_gpu_dcgm.contract import GpuDcgmContract


class TestItKeepsTheContract(GpuDcgmContract):
    pass
