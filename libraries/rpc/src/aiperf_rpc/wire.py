"""The outermost fields of a message whose type is not known."""

from __future__ import annotations

from collections.abc import Iterator


class WireError(ValueError):
    """The bytes are no message."""


def field_numbers(message: bytes) -> Iterator[int]:
    """The numbers of the fields of a message, in their order, without what is inside them.

    Raises:
        WireError: The bytes are no message.
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == 1:
            at += 8
        elif kind == 2:
            size, at = _varint(message, at)
            at += size
        elif kind == 5:
            at += 4
        else:
            raise WireError(f"byte {at} begins no field")
        if at > end or not tag >> 3:
            raise WireError("the last field is cut, or has no number")
        yield tag >> 3


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a number has no end")


__all__ = ["WireError", "field_numbers"]
