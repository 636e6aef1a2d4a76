"""HTTP/2 without I/O, for either side of a connection, and how gRPC stands in it (:mod:`aiperf_http2.grpc`)."""

from aiperf_http2.checks import first_words
from aiperf_http2.connection import Http2Connection
from aiperf_http2.events import (
    ConnectionBroken,
    DataReceived,
    Event,
    GoingAway,
    HeadersReceived,
    SettingsReceived,
    StreamReset,
)
from aiperf_http2.frames import error_name
from aiperf_http2.headers import Fields, HeaderList, HeaderSet, literal, literal_name, literal_value
from aiperf_http2.outbox import Http2Stream, Outbox

__all__ = [
    "ConnectionBroken",
    "DataReceived",
    "Event",
    "Fields",
    "GoingAway",
    "HeaderList",
    "HeaderSet",
    "HeadersReceived",
    "Http2Connection",
    "Http2Stream",
    "Outbox",
    "SettingsReceived",
    "StreamReset",
    "error_name",
    "first_words",
    "literal",
    "literal_name",
    "literal_value",
]
