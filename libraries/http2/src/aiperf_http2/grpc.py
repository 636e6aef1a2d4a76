"""gRPC over HTTP/2: messages in DATA frames, statuses, and texts in header fields.

Facts: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import quote, unquote_to_bytes

CONTENT_TYPE = "application/grpc"
PREFIX_BYTES = 5
MOST_MESSAGE_BYTES = 256 << 20
STATUS_NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
"""Names of the values of ``grpc-status``."""
_HTTP_CODES = (200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401)
_OF_HTTP = {400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14}
"""``grpc-status`` of an HTTP status without one: doc/http-grpc-status-mapping.md."""
_UNITS = ((1, "n"), (10**3, "u"), (10**6, "m"), (10**9, "S"), (60 * 10**9, "M"), (3600 * 10**9, "H"))


class MessageError(ValueError):
    """The bytes are no message that can be read: compressed, too long, or cut."""


def framed(message: bytes) -> bytes:
    """A message as it stands in DATA frames: not compressed, 4 bytes of its length, the message."""
    return b"\x00" + len(message).to_bytes(4, "big") + message


class MessageReader:
    """Divides the body of one call into messages.  most_bytes: of a message."""

    __slots__ = ("_held", "_most_bytes", "_need")

    def __init__(self, most_bytes: int = MOST_MESSAGE_BYTES) -> None:
        self._held: list[bytes] | None = None
        self._need, self._most_bytes = 0, most_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete.

        Raises:
            MessageError: A message is compressed, or longer than allowed; the reader is of no use any more.
        """
        size = len(data) - PREFIX_BYTES
        if self._held is None and 0 <= size <= self._most_bytes and not data[0] and int.from_bytes(data[1:5], "big") == size:
            return [data[5:]]  # as nearly all servers send them: a frame for each message
        if self._held is not None:
            self._held.append(data)
            self._need -= len(data)
            if self._need > 0:
                return []
            data, self._held = b"".join(self._held), None
        messages, at, size = [], 0, len(data)
        while at < size:
            end = at + PREFIX_BYTES
            if end <= size:
                length = int.from_bytes(data[at + 1 : end], "big")
                if data[at]:
                    raise MessageError("a message is compressed, though no compression was offered")
                if length > self._most_bytes:
                    raise MessageError(f"a message has {length:,} bytes, more than {self._most_bytes:,}")
                end += length
            if end > size:
                self._held, self._need = [data[at:]], end - size
                break
            messages.append(data[at + PREFIX_BYTES : end])
            at = end
        return messages

    @property
    def cut(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._held is not None


def status_name(status: int) -> str:
    """The name of a ``grpc-status``; UNKNOWN where it has none."""
    return STATUS_NAMES[status] if 0 <= status < len(STATUS_NAMES) else "UNKNOWN"


def http_code(status: int) -> int:
    """The HTTP status that says what a ``grpc-status`` says."""
    return _HTTP_CODES[status] if 0 <= status < len(_HTTP_CODES) else 500


def status_of_http(code: int) -> int:
    """The ``grpc-status`` of an answer that has none, by its HTTP status."""
    return _OF_HTTP.get(code, 2)


def decoded_message(text: str) -> str:
    """``grpc-message`` without its percent-encoding; what can't be decoded stays as it is, or becomes U+FFFD."""
    return unquote_to_bytes(text).decode("utf-8", "replace")


def encoded_message(text: str) -> str:
    """A text as a value of ``grpc-message``."""
    return quote(text, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")


def timeout(remaining_ns: int) -> str:
    """A value of ``grpc-timeout``, at most eight digits and a unit, rounded up; below 1 ns it is 1 ns."""
    remaining_ns = max(1, remaining_ns)
    for size, unit in _UNITS:
        count = -(-remaining_ns // size)
        if count < 100_000_000:
            return f"{count}{unit}"
    return "99999999H"


def timeout_ns(text: str) -> int | None:
    """The ns of a ``grpc-timeout``; None where it is none."""
    units = {unit: size for size, unit in _UNITS}
    digits, unit = text[:-1], text[-1:]
    if unit not in units or not digits.isascii() or not digits.isdigit() or len(digits) > 8:
        return None
    return int(digits) * units[unit]


def binary(text: str) -> bytes:
    """The bytes of a ``…-bin`` value, base64 with or without padding.

    Raises:
        ValueError: The text is no base64.
    """
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text[:40]!r} is no base64: {error}") from None
