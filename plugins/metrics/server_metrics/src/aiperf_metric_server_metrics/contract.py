"""The contract of telemetry sources with pages for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator

import pytest
from aiperf.sdk.telemetry import TelemetryContext
from aiperf.testing import TelemetryContract

from aiperf_metric_server_metrics import ServerMetrics
from aiperf_metric_server_metrics.options import ServerMetricsOptions

PAGE = b"""\
# HELP queue_seconds Time in the queue.
# TYPE queue_seconds histogram
queue_seconds_bucket{model="m",le="0.1"} 3
queue_seconds_bucket{model="m",le="+Inf"} 4
queue_seconds_sum{model="m"} 0.5
queue_seconds_count{model="m"} 4
# TYPE running gauge
running 2
# TYPE requests_total counter
requests_total{reason="stop"} 7
# TYPE wait_seconds summary
wait_seconds{quantile="0.5"} 0.25
wait_seconds_sum 1.5
wait_seconds_count 6
"""


@contextlib.contextmanager
def serving(page: bytes) -> Iterator[str]:
    """A server that gives the page at any path: its host and port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *arguments: object) -> None:  # the library's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class ServerMetricsContract(TelemetryContract):
    source = ServerMetrics
    options = ServerMetricsOptions()

    @pytest.fixture(autouse=True)
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A server with a page, which the source asks."""
        with serving(PAGE) as place:
            monkeypatch.setattr(type(self), "context", TelemetryContext((f"http://{place}",), ("m",)))
            yield
