"""A collector for tests: what came, read with the published messages of OTLP."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


class Collector:
    """Receives metrics over HTTP.  status: of its answers.  silent: it never answers.

    requests: all messages in their order; headers: of each, with names in lower case; paths: of each.
    """

    def __init__(self, status: int = 200, *, silent: bool = False) -> None:
        self.status, self.silent = status, silent
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._released = threading.Event()
        collector = self

        class _Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                collector.paths.append(self.path)
                collector.requests.append(ExportMetricsServiceRequest.FromString(body))
                if collector.silent:
                    collector._released.wait()
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def resource(self) -> dict[str, str]:
        """The attributes of the latest message."""
        return values(self.requests[-1].resource_metrics[0].resource.attributes)

    def resources(self) -> list[dict[str, Any]]:
        """The attributes of each message."""
        return [values(request.resource_metrics[0].resource.attributes) for request in self.requests]

    def metrics(self) -> dict[str, Any]:
        """The metrics of the latest message, by name; two of one name and other attributes are one with the points of both."""
        found: dict[str, Any] = {}
        for metric in self.requests[-1].resource_metrics[0].scope_metrics[0].metrics:
            if metric.name in found:
                found[metric.name].MergeFrom(metric)
            else:
                found[metric.name] = metric
        return found

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()


def values(attributes: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


__all__ = ["Collector", "values"]
