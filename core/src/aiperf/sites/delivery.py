"""Messages over a connection that may break: each numbered one is taken once, in order, however often it is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec
from msgspec import Struct

_AGAIN_S = 2.0
"""A message that nobody has acknowledged in this time is sent again, and those behind it."""


class _Parcel(Struct, frozen=True, array_like=True):
    """number: of the message, from 1 on; 0 for one that may be lost.  heard: the last number taken from the other side."""

    number: int
    heard: int
    body: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Parcel).decode


class Delivery:
    """One side of a connection.  What it packs must be sent, and what comes must be unpacked here."""

    def __init__(self) -> None:
        self._number = self._heard = 0
        self._owes = False
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._sent_s = 0.0

    def packed(self, body: bytes, now_s: float, *, numbered: bool = True) -> bytes:
        """The message as it is sent."""
        self._owes = False
        if not numbered:
            return _encode(_Parcel(0, self._heard, body))
        if not self._waiting:
            self._sent_s = now_s
        self._number += 1
        self._waiting.append((self._number, body))
        return _encode(_Parcel(self._number, self._heard, body))

    def unpacked(self, data: bytes, now_s: float) -> bytes | None:
        """The message in *data*; None where it has none, was taken before, or has others before it that are missing.

        Raises:
            msgspec.MsgspecError: It is none of ours.
        """
        parcel = _decode(data)
        while self._waiting and self._waiting[0][0] <= parcel.heard:
            self._waiting.popleft()
            self._sent_s = now_s
        if not parcel.number:
            return parcel.body or None
        self._owes = True
        if parcel.number != self._heard + 1:
            return None
        self._heard += 1
        return parcel.body

    def due(self, now_s: float) -> Iterator[bytes]:
        """What is to be sent now beside messages: those of which nothing was heard, or what was heard."""
        if self._waiting and now_s - self._sent_s >= _AGAIN_S:
            self._sent_s, self._owes = now_s, False
            yield from (_encode(_Parcel(number, self._heard, body)) for number, body in self._waiting)
        elif self._owes:
            self._owes = False
            yield _encode(_Parcel(0, self._heard))

    @property
    def settled(self) -> bool:
        """Whether the other side has taken every numbered message."""
        return not self._waiting
