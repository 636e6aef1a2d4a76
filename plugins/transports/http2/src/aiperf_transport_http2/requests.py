"""The heads of requests."""

from __future__ import annotations

import weakref
from time import monotonic_ns

from aiperf.sdk.transport import Exchange, Shape
from aiperf_http2 import HeaderSet, literal, literal_name, literal_value
from aiperf_http2.grpc import CONTENT_TYPE, binary, timeout
from aiperf_transport_sockets.origins import TLS_SCHEMES, Origin

_OF_CONNECTIONS = {
    "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
}  # fmt: skip
"""Fields that HTTP/2 has no place for (RFC 9113, 8.2.2), or that are written here."""
_REQUEST_ID = literal_name("x-request-id")
_NO_DEADLINE_NS = 10**17
"""A run without a request timeout has deadlines so far away, in ns."""


class Http2Head:
    """The head of all requests of one shape.

    grpc: the body is of gRPC messages, known by its content type.  fault: why no such request can be sent, "" where it can.
    """

    shape: weakref.ref[Shape]

    def __init__(self, shape: Shape, origin: Origin) -> None:
        given = {name.lower(): value.strip() for name, value in shape.headers.items()}
        self.method, self.origin, self.fault, self.parts = shape.method, origin, "", shape.parts
        self.grpc = given.get("content-type", "").lower().startswith(CONTENT_TYPE)
        fields = [
            (":method", shape.method), (":scheme", "https" if origin.scheme in TLS_SCHEMES else "http"),
            (":path", origin.target(shape.url)), (":authority", given.get("host", origin.host_header)),
        ]  # fmt: skip
        if self.grpc:
            fields.append(("te", "trailers"))
            given.pop("accept", None)  # the kernel's own: a call has no other answer
        else:
            given.setdefault("accept-encoding", "identity")
        fields += [(name, value) for name, value in given.items() if name not in _OF_CONNECTIONS]
        for name, value in given.items():
            if name.endswith("-bin"):
                try:
                    for part in value.split(","):
                        binary(part.strip())
                except ValueError as error:
                    self.fault = f"the header {name}: {error}; names that end in -bin are of binary values"
        self.fields = HeaderSet(fields)
        self._session_headers = tuple(name.lower() for name in shape.session_headers)
        self._session_names = [literal_name(name) for name in self._session_headers]

    def varying(self, exchange: Exchange) -> list[tuple[str, str]]:
        """The fields that differ from one request to the next."""
        sessions = [(name, exchange.session_id) for name in self._session_headers]
        return [("x-request-id", exchange.request_id), *sessions, *self._about(exchange)]

    def _about(self, exchange: Exchange) -> list[tuple[str, str]]:
        """The length of a body, or the deadline of a call."""
        fields = list[tuple[str, str]]()
        if not self.grpc:
            if not self.parts and (exchange.body or self.method not in ("GET", "HEAD")):
                fields.append(("content-length", str(len(exchange.body))))
        elif exchange.deadline_ns and (left_ns := exchange.deadline_ns - monotonic_ns()) < _NO_DEADLINE_NS:
            fields.append(("grpc-timeout", timeout(left_ns)))
        return fields

    def encoded(self, exchange: Exchange) -> bytes:
        """The fields of :meth:`varying`, for the block."""
        block = _REQUEST_ID + literal_value(exchange.request_id)
        if self._session_names:
            session = literal_value(exchange.session_id)
            for name in self._session_names:
                block += name + session
        if not self.grpc or exchange.deadline_ns:
            for field, value in self._about(exchange):
                block += literal(field, value)
        return block
