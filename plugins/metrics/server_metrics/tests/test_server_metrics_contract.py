"""The source keeps the contract of telemetry sources, at a page of its own."""

from __future__ import annotations

from aiperf_metric_server_metrics.contract import ServerMetricsContract


class TestItKeepsTheContract(ServerMetricsContract):
    pass
