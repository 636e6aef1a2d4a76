"""The contract of latency per token, which needs metrics of other packages."""

from __future__ import annotations

import pytest
from aiperf.testing import MetricContract
from aiperf_metric_trees import LatencyPerToken

latency = pytest.importorskip("aiperf_metric_latency", reason="needs metrics of other packages")
tokens = pytest.importorskip("aiperf_metric_tokens", reason="needs metrics of other packages")


class TestLatencyPerTokenKeepsTheContract(MetricContract):
    metric = LatencyPerToken()
    needed = (latency.RequestLatency(), tokens.OutputSequenceLength())
