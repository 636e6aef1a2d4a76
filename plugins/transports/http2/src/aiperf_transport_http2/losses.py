"""Calls that a server ends, or whose connection it ends: why, and which may be sent once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import RECONNECTED, RESENT, REUSED
from aiperf_http2 import StreamReset, error_name
from aiperf_http2.frames import HTTP_1_1_REQUIRED

if TYPE_CHECKING:
    from aiperf_transport_http2.calls import Call
    from aiperf_transport_http2.outgoing import Outgoing
    from aiperf_transport_http2.wire import Wire


def unread(call: Call, out: Outgoing, wire: Wire, *, ended: bool) -> int:
    """RECONNECTED or RESENT where the server can't have got a byte of the request; 0 where it may have.

    *ended*: the connection's FIN has come.
    """
    if call.begun or not call.exchange.flags & REUSED:  # on a fresh connection it is a fault of the server's
        return 0
    if out.unwritten(call):
        return RECONNECTED
    return RESENT if ended and not wire.acknowledges(call.start) else 0


def not_begun(error: ErrorDetails, wire: Wire) -> ErrorDetails:
    """The error of a connection that ended before the server's settings."""
    known = wire.origin in wire.transport.limits  # by its settings on another connection
    if error.type != "ConnectionResetError" or not wire.connected_ns or known:
        return error
    message = f"{wire.origin.name} closes connections that begin with HTTP/2: does it speak HTTP/1.1 alone?"
    return ErrorDetails(message, type="NoHttp2")


def reset_error(event: StreamReset) -> ErrorDetails:
    """The error of a stream that ended before its end."""
    if event.message:
        return ErrorDetails(f"not HTTP/2: {event.message}", type="InvalidHttp2")
    if event.code == HTTP_1_1_REQUIRED:
        return ErrorDetails("the server wants HTTP/1.1 for this request (HTTP_1_1_REQUIRED)", type="StreamReset")
    return ErrorDetails(f"the server ended the stream: {error_name(event.code)}", type="StreamReset")
