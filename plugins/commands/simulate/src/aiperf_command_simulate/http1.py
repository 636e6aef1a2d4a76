"""HTTP/1.1, the server's half: requests in, in order; answers out, each written at once.  And what HTTP/2 shares with it.

Small on purpose: what a load generator and a browser need.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import parse_qs

import httptools
from msgspec import Struct

from aiperf_command_simulate.outlet import Outlet

if TYPE_CHECKING:
    from aiperf_command_simulate.dialects import Route
    from aiperf_command_simulate.faults import Faults
    from aiperf_command_simulate.pouring import Pouring
    from aiperf_command_simulate.truth import Record, Truth

MOST_BODY_BYTES = 256 * 2**20
_MOST_HEADER_BYTES = 64 * 1024
_MOST_PIPELINED = 32
"""Requests of a connection that wait for their turn; no more are read then."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Request(Struct, frozen=True):
    """One request.  *headers* have lower-case names, the last of several wins.  *variables*: of its path, as its route has it.

    received_ns: CLOCK_MONOTONIC of the read that completed it; received_wall_ns the same by the wall clock.
    messages: of a call, those that the client sent, all or the one to be answered; then *body* is the first.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    chunks_understood: bool
    received_ns: int
    received_wall_ns: int
    variables: dict[str, str] = {}
    messages: tuple[bytes, ...] = ()

    def whole(self, body: bytes, read_ns: int, read_wall_ns: int, messages: tuple[bytes, ...] = ()) -> Request:
        """The request with its body, as of the read that completed it; its head alone came before."""
        return Request(
            self.method, self.path, self.query, self.headers, body, self.keep_alive, self.chunks_understood, read_ns,
            read_wall_ns, self.variables, messages,
        )  # fmt: skip


class Responder(Protocol):
    """Where an answer is written: a connection of HTTP/1.1, or a stream of HTTP/2.  number: of its connection.

    The methods are those of :class:`Connection`.
    """

    number: int

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = ...) -> None: ...

    def begin(self, status: int, headers: dict[str, str], *, length: int | None = None, until_eof: bool = False) -> None: ...

    def piece(self, data: bytes) -> None: ...

    def end(self, data: bytes = b"") -> None: ...

    def release(self) -> None: ...

    def cut(self, *, reset: bool = False) -> None: ...


class Site(Protocol):
    """Answers requests.

    It answers each through its connection: ``respond``, or ``begin``, ``piece`` and ``end``; then ``release``, so that it
    can settle its accounts between writing an answer and hearing of the next request.
    """

    truth: Truth

    def answer(self, connection: Responder, request: Request) -> None: ...

    def route_of(self, path: str) -> Route | None:
        """The route of a call; None for an unknown method."""

    def faults_of(self, request: Request, record: Record) -> Faults:
        """The faults of its answer, which are noted in its row.

        Raises:
            FaultError: The request asks for an unknown one.
        """
        ...

    def lost(self, connection: Responder, outcome: str = ...) -> None:
        """The client went away while its request was being answered, or what *outcome* says."""

    def opened(self, connection: Closable) -> int:
        """A connection was accepted; returns its number."""
        ...

    def closed(self, connection: Closable) -> None: ...


class Closable(Protocol):
    def cut(self, *, reset: bool = False) -> None: ...


def head(status: int, headers: dict[str, str]) -> bytes:
    """Status line and headers, with the empty line."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class Connection(asyncio.Protocol):
    """One client's connection; answers one request at a time and keeps pipelined ones in order."""

    # More than 20 attributes: the parser calls back without arguments, so each part of a request is kept between calls.

    def __init__(self, site: Site) -> None:
        self.number = 0
        self._site = site
        self._transport: asyncio.Transport | None = None
        self._outlet: Outlet | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._pending: deque[Request] = deque()
        self._current: Request | None = None
        self._dispatching = False
        self._refused: tuple[int, str] | None = None
        self._closing = False
        self._chunked = False
        self._close_after = False
        self._continue_due = False
        self._paused = False
        self._read_ns = 0
        self._read_wall_ns = 0
        self.pouring: Pouring | None = None
        self._full = False
        self._clear()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock: socket.socket = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._outlet = Outlet(self._transport)
        self.number = self._site.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._read_ns = time.monotonic_ns()
        self._read_wall_ns = time.time_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The parser takes a body for the other protocol's, so the wish can't just be ignored.
            self._refused = self._refused or (501, "no protocol but HTTP/1.1 is spoken here")
        except httptools.HttpParserError as exc:
            self._refused = self._refused or (400, f"this is not HTTP/1.1: {exc}")
        if self._refused and not self._pending and self._current is None:
            self._refuse()

    def eof_received(self) -> bool:
        self._closing = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._pending.clear()
        if self._current is not None:
            self._site.lost(self)
            self._current = None
        self._site.closed(self)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self.pouring is not None:
            self.pouring.go_on()

    @property
    def blocked(self) -> bool:
        return self._full or self._closing

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._clear()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        if self._headers.get("expect", "").lower() == "100-continue":
            # An answer still being written must not have this in its midst.
            if self._current is None and not self._pending:
                self.write(_CONTINUE)
            else:
                self._continue_due = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > MOST_BODY_BYTES:
            self._refused = self._refused or (413, f"the body has more than {MOST_BODY_BYTES} bytes")
            self._body.clear()
        if not self._refused:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._refused or self._closing or self._parser.should_upgrade():
            return
        path, _, query = self._url.decode("latin-1").partition("?")
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            path=path,
            query=parse_qs(query, keep_blank_values=True),
            headers=self._headers,
            body=b"".join(self._body),
            keep_alive=self._parser.should_keep_alive(),
            chunks_understood=self._parser.get_http_version() != "1.0",
            received_ns=self._read_ns,
            received_wall_ns=self._read_wall_ns,
        )
        self._continue_due = False
        self._pending.append(request)
        if len(self._pending) >= _MOST_PIPELINED and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._next()

    # What the site calls.

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = "application/json") -> None:
        """The whole answer at once."""
        request = self._request()
        close = not request.keep_alive
        fields = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        if close:
            fields["Connection"] = "close"
        self._close_after = close
        self.write(head(status, fields) + (b"" if request.method == "HEAD" else body))

    def begin(self, status: int, headers: dict[str, str], *, length: int | None = None, until_eof: bool = False) -> None:
        """Status line and headers of an answer whose body comes in pieces.

        *length*: of the body, if it is known.  *until_eof*: the end of the connection ends the body.
        """
        request = self._request()
        fields = dict(headers)
        self._chunked = length is None and not until_eof and request.chunks_understood
        if length is not None:
            fields["Content-Length"] = str(length)
        elif self._chunked:
            fields["Transfer-Encoding"] = "chunked"
        self._close_after = not request.keep_alive or (length is None and not self._chunked)
        if self._close_after:
            fields["Connection"] = "close"
        self.write(head(status, fields))

    def piece(self, data: bytes) -> None:
        self.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self, data: bytes = b"") -> None:
        """The last piece, sent together with what ends the body."""
        if self._chunked:
            data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"
        if data:
            self.write(data)

    def release(self) -> None:
        """The answer is complete: go on with the next request, or close."""
        self._current = None
        if self._close_after:
            self._pending.clear()
            self.close()
        else:
            self._next()

    def cut(self, *, reset: bool = False) -> None:
        """Close in the midst of an answer; *reset* sends RST instead of FIN."""
        self._current = None
        if reset and self._transport is not None:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._closing = True
            self._transport.abort()
        else:
            self.close()

    def close(self) -> None:
        """Send what is queued, then close."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def write(self, data: bytes) -> None:
        if self._outlet is not None and not self._outlet.write(data):
            self._closing = True  # connection_lost says so to the site

    def _request(self) -> Request:
        if self._current is None:
            raise RuntimeError("there is no request to answer")
        return self._current

    def _next(self) -> None:
        if self._dispatching:
            return
        self._dispatching = True
        try:
            while self._pending and self._current is None and not self._closing:
                self._current = self._pending.popleft()
                self._close_after = False
                if self._paused and len(self._pending) <= _MOST_PIPELINED // 2 and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
                self._site.answer(self, self._current)
        finally:
            self._dispatching = False
        if self._current is not None or self._closing:
            return
        if self._refused:
            self._refuse()
        elif self._continue_due:
            self._continue_due = False
            self.write(_CONTINUE)

    def _refuse(self) -> None:
        if self._closing or self._refused is None:
            return
        status, message = self._refused
        body = message.encode()
        fields = {"Content-Type": "text/plain", "Content-Length": str(len(body)), "Connection": "close"}
        self.write(head(status, fields) + body)
        self.close()

    def _clear(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._header_bytes = 0

    def _count(self, header_bytes: int) -> None:
        self._header_bytes += header_bytes
        if self._header_bytes > _MOST_HEADER_BYTES:
            self._refused = self._refused or (431, f"the headers have more than {_MOST_HEADER_BYTES} bytes")
