"""The source keeps the contract of telemetry sources, with an AMD SMI of its own."""

from __future__ import annotations

from aiperf_metric_gpu_amd.contract import AmdElsewhereContract, GpuAmdContract


class TestItKeepsTheContract(GpuAmdContract):
    pass


class TestTheWarningKeepsTheContract(AmdElsewhereContract):
    pass
