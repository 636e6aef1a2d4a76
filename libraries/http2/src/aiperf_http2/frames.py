"""Frames of HTTP/2 (RFC 9113): their numbers, their heads, and the error of a connection."""

from __future__ import annotations

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""A client's first bytes: section 3.4."""
HEAD = struct.Struct(">HBBBI")
"""A frame's head: length as 16 and 8 bits, type, flags, stream."""
HEAD_BYTES = 9

# Types of frames: section 6.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
# Flags: section 6.
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 0x1, 0x1, 0x4, 0x8, 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = range(1, 7)
"""Settings: section 6.5.2."""

# Error codes: section 7.
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x2, 0x3
# More of them.
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = 0x5, 0x6, 0x7, 0x8, 0x9
# More of them.
ENHANCE_YOUR_CALM, HTTP_1_1_REQUIRED = 0xB, 0xD
ERROR_NAMES = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)  # fmt: skip
"""Names of the error codes, in their order."""

DEFAULT_WINDOW, DEFAULT_FRAME = 65_535, 16_384
"""Bytes, until settings say otherwise."""
MOST_WINDOW = (1 << 31) - 1
"""Bytes of the largest window."""
MOST_FRAME = (1 << 24) - 1
"""Bytes of the longest payload that settings may allow."""
STREAM_MASK = 0x7FFF_FFFF
"""The bits of a stream's number."""


class Http2Error(Exception):
    """The peer broke the protocol, and the connection can't go on.

    code: the error code that the peer gets.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def error_name(code: int) -> str:
    """The name of an error code; its number where it has none."""
    return ERROR_NAMES[code] if code < len(ERROR_NAMES) else f"error {code:#x}"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A whole frame."""
    size = len(payload)
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def settings_frame(values: dict[int, int]) -> bytes:
    """A SETTINGS frame with these values."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in values.items()))


def window_update(stream: int, size: int) -> bytes:
    """A WINDOW_UPDATE frame: *size* more bytes, 1 to 2**31 - 1, for a stream, or for the connection (0)."""
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big"))
