"""HTTP/2, the server's half: the streams of a connection, each of which answers one request, or one call of gRPC."""

from __future__ import annotations

import asyncio
import time
from typing import cast
from urllib.parse import parse_qs

from aiperf_http2 import ConnectionBroken, DataReceived, HeaderSet, HeadersReceived, Http2Connection, Http2Stream, StreamReset
from aiperf_http2.frames import CANCEL, INTERNAL_ERROR, PREFACE
from aiperf_http2.grpc import CONTENT_TYPE

from aiperf_command_simulate.calls import Call
from aiperf_command_simulate.http1 import MOST_BODY_BYTES, Connection, Request, Site
from aiperf_command_simulate.outlet import Outlet
from aiperf_command_simulate.truth import CLIENT_GONE, CUT

MOST_STREAMS = 1000
"""Open at once on one connection."""


class Front(asyncio.Protocol):
    """Reads the first bytes of a connection: HTTP/2 has its preface, all others are HTTP/1.1's."""

    def __init__(self, site: Site) -> None:
        self._site, self._first = site, Connection(site)
        self._transport: asyncio.Transport | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._first.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        held = self._held = self._held + data
        if len(held) < len(PREFACE) and PREFACE.startswith(held):
            return
        transport = self._transport
        assert transport is not None
        if not held.startswith(PREFACE):
            transport.set_protocol(self._first)
            self._first.data_received(held)
            return
        session = Multiplex(self._site, self._first, transport)
        transport.set_protocol(session)
        session.data_received(held)

    def eof_received(self) -> bool:
        return self._first.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._first.connection_lost(exc)


class Multiplex(asyncio.Protocol):
    """One client's connection, and its streams.  *first*: what accepted it, and closes it.  number: of the connection."""

    def __init__(self, site: Site, first: Connection, transport: asyncio.Transport) -> None:
        self.site, self.number = site, first.number
        self.http = Http2Connection(client=False, max_streams=MOST_STREAMS)
        self.read_ns = self.read_wall_ns = 0
        self._first, self._transport, self._outlet = first, transport, Outlet(transport)

    # What the loop calls.

    def data_received(self, data: bytes) -> None:
        self.read_ns, self.read_wall_ns = time.monotonic_ns(), time.time_ns()
        events = self.http.receive(data)
        for event in events:
            if isinstance(event, DataReceived):
                self._responder(event.stream).data(event.data, end=event.end)
            elif isinstance(event, HeadersReceived):
                self._headed(event)
            elif isinstance(event, StreamReset):
                self._responder(event.stream).lost()
        self.flush()
        if events and isinstance(events[-1], ConnectionBroken):
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._give_up(CLIENT_GONE)
        self._first.connection_lost(exc)

    def _headed(self, event: HeadersReceived) -> None:
        if event.trailers:
            self._responder(event.stream).data(b"", end=True)
            return
        headers = dict(event.fields)
        path, _, query = headers[":path"].partition("?")
        kind: type[HttpStream] | type[Call] = HttpStream
        if headers.get("content-type", "").startswith(CONTENT_TYPE):
            kind = Call
        request = Request(
            headers[":method"], path, parse_qs(query, keep_blank_values=True), headers, b"", True, True, 0, 0
        )
        event.stream.owner = responder = kind(self, event.stream, request)
        if event.end:
            responder.data(b"", end=True)

    def _responder(self, stream: Http2Stream) -> HttpStream | Call:
        return cast("HttpStream | Call", stream.owner)

    # What streams call.

    def flush(self) -> None:
        """Write all frames that are ready."""
        while data := self.http.take():
            if not self._outlet.write(data):
                return

    def cut(self, stream: Http2Stream, *, reset: bool) -> None:
        """Reset the stream, or close the connection with all of its streams."""
        if reset:
            self.http.reset(stream, INTERNAL_ERROR)
            self.flush()
            return
        self._give_up(CUT)
        self._transport.close()

    def refuse(self, stream: Http2Stream) -> None:
        self.http.reset(stream, CANCEL)

    def _give_up(self, outcome: str) -> None:
        for stream in list(self.http.streams.values()):
            if isinstance(stream.owner, HttpStream | Call):
                stream.owner.lost(outcome)


class HttpStream:
    """One request over HTTP/2, and its answer."""

    def __init__(self, session: Multiplex, stream: Http2Stream, request: Request) -> None:
        self.number = session.number
        self._session, self._stream, self._request = session, stream, request
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._answering = False

    # What the session calls.

    def data(self, data: bytes, *, end: bool) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > MOST_BODY_BYTES:
            self._session.refuse(self._stream)
            return
        self._body.append(data)
        if end and not self._answering:
            self._answering = True
            session = self._session
            request = self._request.whole(b"".join(self._body), session.read_ns, session.read_wall_ns)
            session.site.answer(self, request)

    def lost(self, outcome: str = CLIENT_GONE) -> None:
        if self._answering:
            self._answering = False
            self._session.site.lost(self, outcome)

    # What the site calls.

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = "application/json") -> None:
        fields = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
        body = b"" if self._request.method == "HEAD" else body
        self._head(status, fields)
        self._session.http.send(self._stream, body, end=True)
        self._session.flush()

    def begin(self, status: int, headers: dict[str, str], *, length: int | None = None, until_eof: bool = False) -> None:
        self._head(status, headers if length is None else {**headers, "content-length": str(length)})
        self._session.flush()

    def piece(self, data: bytes) -> None:
        self._session.http.send(self._stream, data)
        self._session.flush()

    def end(self, data: bytes = b"") -> None:
        self._session.http.send(self._stream, data, end=True)
        self._session.flush()

    def release(self) -> None:
        self._answering = False

    def cut(self, *, reset: bool = False) -> None:
        self._answering = False
        self._session.cut(self._stream, reset=reset)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        fields = [(":status", str(status)), *((name.lower(), value) for name, value in headers.items())]
        self._session.http.head(self._stream, HeaderSet(fields))
