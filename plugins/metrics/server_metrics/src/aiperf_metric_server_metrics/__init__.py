"""What servers say of themselves beside the load: pages of metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.telemetry import Absent, TelemetrySource, TelemetryTarget
from msgspec.structs import replace

from aiperf_metric_server_metrics.options import ServerMetricsOptions, interval_s, timeout_s

_TENSORRT_LLM = "/prometheus/metrics"
"""Its page of metrics, since its ``/metrics`` is JSON."""


class ServerMetrics(TelemetrySource[ServerMetricsOptions]):
    """A target for each page: the servers under test first, then those that the user named, none twice."""

    def targets(self) -> Sequence[TelemetryTarget]:
        from aiperf_metric_server_metrics.addresses import Address, given_address, tested_address
        from aiperf_metric_server_metrics.target import MetricsTarget

        tested = [tested_address(url) for url in self.context.http_urls]
        given = [given_address(item) for item in self.options.server_metrics]
        asked = {address.key for address in given}
        pages: dict[object, Address] = {}
        for address in (*tested, *given):
            known = pages.setdefault(address.key, address)  # in its first spelling
            if address.login:
                pages[address.key] = replace(known, login=address.login)
        if not pages:
            raise Absent("no server under test speaks HTTP; --server-control-url or --server-metrics may name one that does")
        return [
            MetricsTarget(address, self.context, interval_s(), timeout_s(), asked=key in asked, second=_TENSORRT_LLM)
            for key, address in pages.items()
        ]
