"""The round trip of the network, and latencies without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from aiperf import MetricDeclaration, MetricFamily, Needs, Totals, Unit
from aiperf.sdk.metric import RunDistribution

from aiperf_metric_network.options import NetworkOptions

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

_RTT = "network_rtt"
_NS_PER_MS = 1e6
_ADJUSTED = (
    ("network_adjusted_time_to_first_token", "time_to_first_token", "Network-Adjusted Time to First Token", "Net TTFT", 101),
    ("network_adjusted_time_to_first_output_token", "time_to_first_output_token", "Network-Adjusted Time to First Output Token",
     "Net TTFO", 211),
    ("network_adjusted_request_latency", "request_latency", "Network-Adjusted Request Latency", "Net Latency", 301),
)  # fmt: skip
"""Tag, the latency that it is made of, title, short title and place."""


class NetworkRtt(RunDistribution):
    """The mean round trip of the phase or time slice, over all servers; one number, which all its statistics are.

    fixed_ms: the round trip that the user gave; None where it is measured.
    """

    tag, title, short = _RTT, "Network RTT", "RTT"
    unit, display, order = Unit.NANOSECONDS, Unit.MILLISECONDS, 305

    def __init__(self, fixed_ms: float | None) -> None:
        self._fixed_ms = fixed_ms

    def values(self, run: Totals) -> Floats | None:
        if self._fixed_ms is not None:
            return np.array([self._fixed_ms * _NS_PER_MS])
        means = [each.stats["avg"] for each in run.series("network", _RTT) if "avg" in each.stats]
        return np.array([sum(means) / len(means) * _NS_PER_MS]) if means else None


class NetworkAdjusted(RunDistribution):
    """The values of a latency, each less the mean round trip and at least 0."""

    unit, display = Unit.NANOSECONDS, Unit.MILLISECONDS

    def __init__(self, tag: str, plain: str, title: str, short: str, order: int) -> None:
        self.tag, self.title, self.short, self.order = tag, title, short, order
        self.needs, self.reads = (_RTT, plain), (plain,)

    def values(self, run: Totals) -> Floats | None:
        (plain,) = self.reads
        round_trip_ns, values = run.value(_RTT), run.values(plain)
        return None if round_trip_ns is None or values is None else np.maximum(values - round_trip_ns, 0.0)


class NetworkMetrics(MetricFamily):
    """No metric where the round trip is neither measured nor given."""

    def __init__(self, options: NetworkOptions) -> None:
        self._options = options

    def metrics(self, others: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]) -> Iterable[MetricDeclaration]:
        if self._options.fixed_ms is None and not self._options.probing:
            return
        yield NetworkRtt(self._options.fixed_ms)
        for tag, plain, title, short, order in _ADJUSTED:
            if plain in others and plain not in unfit:
                yield NetworkAdjusted(tag, plain, title, short, order)


__all__ = ["NetworkAdjusted", "NetworkMetrics", "NetworkRtt"]
