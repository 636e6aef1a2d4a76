"""HTTP framing of the answers on one connection, by httptools.

HEAD, 204 and 304 have no body.  httptools says ``should_keep_alive`` rightly only inside ``on_message_complete``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httptools
from aiperf.sdk.model import ErrorDetails


class Answer:
    """The answers on one connection, one after the other.  Methods named ``on_…`` are callbacks of httptools.

    status: 0 until the head of a final answer (200 and above) is in; *new_head* is then set, and cleared by the reader.
    streamed: the answer is an event stream.  pieces: body of the bytes fed since the last ``pieces.clear()``.
    begun: a byte of it has come.  interim: number of answers below 200 before it.
    complete: the whole answer is in; the first *own_pieces* of the pieces are of it.
    keep: the server keeps the connection open.  stray: bytes came behind the answer.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        # The parser calls the list itself: a method of this class would be one more call per chunk.
        self.on_body = self.pieces.append
        self.headers: list[tuple[bytes, bytes]] = []
        self.reason = b""
        self.status = 0
        self.begun = self.new_head = self.streamed = self.odd = self.complete = self.stray = self.keep = False
        self.own_pieces = self.interim = 0
        self._bodyless = False
        self._parser: Any = None
        self.feed: Callable[[bytes], object] = _ignore

    def expect(self, method: str) -> None:
        """The next answer is that to a request of this *method*."""
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
            self.feed = self._parser.feed_data
        self._bodyless = method == "HEAD"
        self.status = self.interim = 0
        self.begun = self.complete = self.stray = False
        self.headers.clear()

    def release(self) -> None:
        """Drop the parser, which refers back to this object: workers run without garbage collection."""
        self._parser, self.feed = None, _ignore

    @property
    def length_known(self) -> bool:
        """Whether the answer itself says where it ends."""
        return any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def on_message_begin(self) -> None:
        if self.complete:
            self.stray = True
        else:
            self.begun = True
            self.headers.clear()
            self.reason = b""

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 100:
            raise ValueError(f"status {status:03}")
        if self.complete or status < 200:
            return
        self.status, self.new_head, self.streamed, self.odd = status, True, False, False
        for name, value in self.headers:
            if len(name) == 12 and name.lower() == b"content-type":
                kind = value.lower()
                self.streamed = kind.startswith(b"text/event-stream")
                self.odd = self.odd or not (self.streamed or b"json" in kind)
            elif len(name) == 16 and name.lower() == b"content-encoding":
                self.odd = True
        if self._bodyless:
            self.on_message_complete()
            self._parser = None  # it waits for a body that never comes

    def on_message_complete(self) -> None:
        if self.status and not self.complete:
            self.complete = True
            self.own_pieces = len(self.pieces)
            self.keep = self._parser.should_keep_alive()  # right only inside these callbacks
        elif not self.status:
            self.interim += 1


def _ignore(data: bytes) -> None:
    """The feed of a closed connection."""


def protocol_of(data: bytes) -> str:
    """Words on a server that speaks something else; "" where its first bytes don't tell."""
    if data[:2] == b"\x15\x03":  # an alert: RFC 8446, 5.1
        return "the server speaks TLS"
    return "the server speaks HTTP/2" if data[3:4] == b"\x04" and data[5:9] == bytes(4) else ""  # SETTINGS: RFC 9113, 3.4


def not_http(reason: object) -> ErrorDetails:
    """The error of an answer that can't be parsed."""
    return ErrorDetails(f"not HTTP: {reason}", type="InvalidHttpResponse")
