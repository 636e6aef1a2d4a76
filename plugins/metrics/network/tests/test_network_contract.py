"""The plugins keep their contracts."""

from __future__ import annotations

from aiperf.testing import RunMetricContract
from aiperf_metric_network.contract import (
    NetworkMetricsContract,
    NetworkProbesContract,
    NetworkTableContract,
    ProbeLinesContract,
)
from aiperf_metric_network.metrics import NetworkAdjusted, NetworkRtt


class TestTheProbesKeepTheContract(NetworkProbesContract):
    pass


class TestTheFamilyKeepsTheContract(NetworkMetricsContract):
    pass


class TestTheTableKeepsTheContract(NetworkTableContract):
    pass


class TestTheLinesKeepTheContract(ProbeLinesContract):
    pass


class TestTheRoundTripKeepsTheContract(RunMetricContract):
    metric = NetworkRtt(None)


class TestAnAdjustedLatencyKeepsTheContract(RunMetricContract):
    metric = NetworkAdjusted("adjusted", "request_latency", "Adjusted", "Adj", 1)
