"""The round trip to each server under test, by a TCP connection again and again beside the load."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import TelemetrySource, TelemetryTarget

from aiperf_metric_network.options import NetworkOptions


class NetworkProbes(TelemetrySource[NetworkOptions]):
    """A target for each host and port to which the run's connections go.

    With ``AIPERF_HTTP_TRUST_ENV`` that is the proxy of a URL that has one.
    """

    def targets(self) -> Sequence[TelemetryTarget]:
        from aiperf_metric_network.probe import NetworkTarget, places

        found = places(self.context.urls)
        if not found:
            raise AiperfError("--network-latency-automatic: no server under test has a TCP port to connect to; drop it")
        return [NetworkTarget(place, self.options.interval_s) for place in found]


__all__ = ["NetworkProbes"]
