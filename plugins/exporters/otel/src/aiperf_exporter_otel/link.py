"""A reducer's side of the socket: what finds no room waits, and of too much the oldest is dropped."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from pathlib import Path

import msgspec

from aiperf_exporter_otel.messages import LENGTH, FromReducer, ReducerEnd

_ROOM = 1 << 20
"""Bytes that the system keeps for the socket, if it may."""
_encode = msgspec.msgpack.Encoder().encode


def address_file(journal: Path) -> Path:
    """The file with the path of the socket, which is too long for a socket in many journals."""
    return journal / "otel.address"


class Link:
    """Sends messages without ever waiting, except in :meth:`end`.

    address: the path of the socket; None, or one where nobody listens, sends nothing.
    most: requests that wait; of more, the oldest are dropped.  dropped: requests so far.
    """

    def __init__(self, address: str | None, most: int) -> None:
        self._most, self.dropped = most, 0
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._held = 0
        self._part = memoryview(b"")
        self._socket: socket.socket | None = None
        if address is not None:
            with contextlib.suppress(OSError):
                self._socket = _connected(address)

    def give(self, message: FromReducer, count: int) -> None:
        """Send a message of *count* requests, now or later."""
        if self._socket is None:
            return
        body = _encode(message)
        self._waiting.append((count, len(body).to_bytes(LENGTH, "big") + body))
        self._held += count
        self._flush()
        while self._held > self._most and len(self._waiting) > 1:
            lost, _ = self._waiting.popleft()
            self._held -= lost
            self.dropped += lost

    def end(self, reducer: int, patience_s: float) -> None:
        """Say that all was told, and wait until it has been taken, for so long at most."""
        self.give(ReducerEnd(reducer, self.dropped), 0)
        until_s = time.monotonic() + patience_s
        while self._socket is not None and (self._waiting or self._part) and (left_s := until_s - time.monotonic()) > 0:
            select.select([], [self._socket], [], left_s)
            self._flush()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _flush(self) -> None:
        while self._socket is not None and (self._part or self._waiting):
            if not self._part:
                count, framed = self._waiting.popleft()
                self._held -= count
                self._part = memoryview(framed)
            try:
                self._part = self._part[self._socket.send(self._part) :]
            except BlockingIOError:
                return
            except OSError:  # nobody listens any more: the run has said so
                self._socket.close()
                self._socket = None


def _connected(address: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
        made.connect(address)
    except OSError:
        made.close()
        raise
    return made


__all__ = ["Link", "address_file"]
