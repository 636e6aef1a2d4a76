"""Options of the metrics of servers."""

from __future__ import annotations

from typing import Annotated

from aiperf import Options, option
from aiperf.sdk.environment import number
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.options import After

from aiperf_metric_server_metrics.addresses import given_address

_GROUP = "Server metrics"


def interval_s() -> float:
    """``AIPERF_SERVER_METRICS_COLLECTION_INTERVAL``."""
    return number("AIPERF_SERVER_METRICS_COLLECTION_INTERVAL", 0.01, 300, 0.333)


def timeout_s() -> float:
    """``AIPERF_SERVER_METRICS_SCRAPE_TIMEOUT``, else ``AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT``."""
    common = number("AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT", 0.1, 300, 30)
    return number("AIPERF_SERVER_METRICS_SCRAPE_TIMEOUT", 0.1, 300, common)


def _addresses(items: list[str]) -> list[str]:
    for item in items:
        given_address(item)
    return items


class ServerMetricsOptions(Options):
    server_metrics: Annotated[list[str], After(_addresses)] = option("--server-metrics", default=[], arity="many",
        group=_GROUP, metavar="URL", place="server_metrics.urls", shown="/metrics of each --url",
        help="Further pages of metrics for Prometheus to read beside the load: HOST:PORT or a URL.")
    server_metrics_enabled: bool = option("--collect-server-metrics", negative="--no-server-metrics", default=True,
        group=_GROUP, place="server_metrics.enabled",
        help="Read the servers' pages of metrics beside the load.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        sentences = []
        if not self.server_metrics_enabled and "server_metrics" in typed:
            off = typed.get("server_metrics_enabled", "--no-server-metrics")
            sentences.append(f"{typed['server_metrics']} names pages to read, and {off} reads none\ndrop one of them")
        for read in (interval_s, timeout_s) if self.server_metrics_enabled else ():
            try:
                read()
            except ConfigError as error:
                sentences.append(error.message)
        return sentences
