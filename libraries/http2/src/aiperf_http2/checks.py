"""What a peer must keep to, apart from the state of a connection."""

from __future__ import annotations

from aiperf_http2.frames import FRAME_SIZE_ERROR, PROTOCOL_ERROR, Http2Error
from aiperf_http2.headers import Fields


def first_words(data: bytes) -> str:
    """A sentence on a peer whose first bytes are no SETTINGS frame."""
    if data.startswith(b"HTTP/1."):
        return "the server speaks HTTP/1.1, not HTTP/2"
    if data[:1] == b"\x15" and data[1:2] == b"\x03":  # an alert: RFC 8446, 5.1
        return "the server speaks TLS"
    if data[3:4] and data[3] < 10 and data[5:9] == bytes(4):
        return "the server does not begin with its settings"
    return "the server speaks no HTTP/2"


def misshapen(number: int | bool, kind: str) -> Http2Error:
    """The error of a frame with a wrong length, or, where *number* is true, of a wrong stream."""
    code = PROTOCOL_ERROR if number else FRAME_SIZE_ERROR
    return Http2Error(code, f"{kind} {'on a wrong stream' if number else 'has a wrong length'}")


def unpadded(payload: bytes) -> bytes:
    """The payload of a padded frame without its padding: section 6.1."""
    if not payload or payload[0] >= len(payload):
        raise Http2Error(PROTOCOL_ERROR, "a frame has more padding than bytes")
    return payload[1 : len(payload) - payload[0]]


def fault_of(fields: Fields, *, client: bool, trailers: bool, last: bool) -> str:
    """What is wrong with a head, "" where nothing is: sections 8.1 to 8.3."""
    pseudo = True
    for name, _ in fields:
        if not name or name != name.lower():
            return f"the field name {name[:40]!r}"
        if not name.startswith(":"):
            pseudo = False
        elif trailers or not pseudo:
            return f"the pseudo field {name[:40]!r} in a wrong place"
    if trailers:
        return "" if last else "trailers that don't end the stream"
    if not client:
        return "" if {":method", ":path"} <= {name for name, _ in fields} else "a request without method or path"
    status = fields[0][1] if fields and fields[0][0] == ":status" else ""
    if len(status) != 3 or not status.isascii() or not status.isdigit() or status < "100":
        return "an answer without a status"
    return f"an interim answer {status} that ends the stream" if status[0] == "1" and last else ""
