"""A server of HTTP/2 that does what a test says, and a transport that talks to it, with either reader."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic_ns
from typing import Any

import msgspec
import pytest
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import Exchange, Shape, TransportSettings
from aiperf_http2 import (
    DataReceived,
    Event,
    HeaderSet,
    HeadersReceived,
    Http2Connection,
    Http2Stream,
    StreamReset,
)
from aiperf_http2 import frames as f
from aiperf_http2.grpc import framed
from aiperf_reader import ReaderError, SocketReader
from aiperf_testing.server import Certificate
from aiperf_testing.transports import Ear
from aiperf_transport_http2 import Http2Transport

PATIENCE_S = 60.0
OK = HeaderSet([(":status", "200"), ("content-type", "application/grpc")])
DONE = HeaderSet([("grpc-status", "0")])


def _missing() -> str | None:
    try:
        SocketReader.opened().close()
    except ReaderError as error:
        return str(error)
    return None


_MISSING = _missing()


@pytest.fixture(autouse=True, params=["python", "compiled"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The value of AIPERF_READER."""
    kind: str = request.param
    if kind == "compiled" and _MISSING is not None:
        pytest.skip(_MISSING)
    monkeypatch.setenv("AIPERF_READER", kind)
    return kind


class Peer:
    """The server's side of one connection.  number: of the connection, from 0."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, http: Http2Connection) -> None:
        self._reader, self.writer, self.number, self.http = reader, writer, number, http
        self.events: deque[Event] = deque()
        self.resets: list[tuple[int, str]] = []
        self.bodies: dict[int, bytes] = {}
        self.raw = b""

    def write(self, *data: bytes) -> None:
        self.writer.write(b"".join(data))

    def flush(self) -> None:
        """Write what the connection has to say."""
        while data := self.http.take():
            self.writer.write(data)

    async def event(self) -> Event | None:
        """The next event; None at the end of the connection."""
        while not self.events:
            data = b""
            with suppress(ConnectionError):
                data = await self._reader.read(1 << 16)
            if not data:
                return None
            self.raw += data
            for event in self.http.receive(data):
                if isinstance(event, StreamReset):
                    self.resets.append((event.stream.number, f.ERROR_NAMES[event.code]))
                elif isinstance(event, DataReceived):
                    number = event.stream.number
                    self.bodies[number] = self.bodies.get(number, b"") + event.data
                self.events.append(event)
        return self.events.popleft()

    async def request(self, *, whole: bool = True) -> tuple[Http2Stream, dict[str, str], bytes]:
        """The next request: once it is *whole*, or its head is in."""
        heads: dict[int, dict[str, str]] = {}
        while (event := await self.event()) is not None:
            if isinstance(event, HeadersReceived):
                heads[event.stream.number] = dict(event.fields)
            if isinstance(event, HeadersReceived | DataReceived) and (event.end or not whole):
                number = event.stream.number
                return event.stream, heads.get(number, {}), self.bodies.get(number, b"")
        raise EOFError("the client closed the connection")

    async def closed(self) -> None:
        """Wait for the end of the connection, or for its error."""
        while await self.event() is not None:
            pass

    def answer(self, stream: Http2Stream, *messages: bytes, trailers: HeaderSet = DONE) -> None:
        """Answer a call."""
        self.http.head(stream, OK)
        for message in messages:
            self.http.send(stream, framed(message))
        self.http.finish(stream, trailers)
        self.flush()

    async def echo(self) -> None:
        """Answer every call with its own message."""
        with suppress(EOFError):
            while True:
                stream, _, body = await self.request()
                self.answer(stream, body[5:])


Script = Callable[[Peer], Awaitable[None]]


class Server:
    """A server that plays a script on each connection."""

    def __init__(self, script: Script, *, greets: bool = True, **http: Any) -> None:
        self._script, self._greets, self._http = script, greets, http
        self.peers: list[Peer] = []
        self.tasks: list[asyncio.Task[Any] | None] = []
        self.faults: list[BaseException] = []

    async def start(self, context: ssl.SSLContext | None) -> asyncio.Server:
        return await asyncio.start_server(self.talk, "127.0.0.1", 0, ssl=context)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(self.peers), Http2Connection(client=False, **self._http))
        self.peers.append(peer)
        self.tasks.append(asyncio.current_task())
        if self._greets:
            peer.flush()
        try:
            await self._script(peer)
        except (EOFError, ConnectionError):
            pass
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # the test tells it
            self.faults.append(error)
        finally:
            writer.close()


class Scene:
    """A transport, the sink that hears it, and the server at its other end."""

    def __init__(self, transport: Http2Transport, server: Server, ear: Ear, url: str) -> None:
        self.transport, self.server, self.ear, self.url = transport, server, ear, url
        self._made = 0
        self._shapes: dict[Any, Shape] = {}

    @property
    def peers(self) -> list[Peer]:
        return self.server.peers

    def exchange(
        self, body: bytes = b"ask", *, headers: dict[str, str] | None = None, url: str = "", method: str = "POST",
        parts: tuple[tuple[int, int], ...] = (), kind: str = "application/grpc", session: str = "", drain: bool = False,
    ) -> Exchange:  # fmt: skip
        given = {"User-Agent": "test/1", "Content-Type": kind, "Accept": "*/*"} | (headers or {})
        key = (url, tuple(given.items()), parts, method, drain)
        if key not in self._shapes:
            where = url or f"{self.url}/pkg.Service/Method"
            self._shapes[key] = Shape(where, given, ("X-Correlation-ID",), method, drain, parts)
        number, self._made = self._made, self._made + 1
        return Exchange(number, self._shapes[key], body, f"request-{number}", session or f"session-{number}", monotonic_ns())

    async def over(self, exchange: Exchange) -> ErrorDetails | None:
        await self.ear.until(lambda: exchange.request in self.ear.ends)
        return self.ear.ends[exchange.request][0]

    async def ask(self, body: bytes = b"ask", **how: Any) -> tuple[Exchange, ErrorDetails | None]:
        exchange = self.exchange(body, **how)
        self.transport.send(exchange)
        return exchange, await self.over(exchange)

    async def together(self, count: int, **how: Any) -> list[Exchange]:
        exchanges = [self.exchange(b"%d" % n, **how) for n in range(count)]
        for exchange in exchanges:
            self.transport.send(exchange)
        for exchange in exchanges:
            await self.over(exchange)
        return exchanges

    def error(self, exchange: Exchange) -> ErrorDetails | None:
        return self.ear.ends[exchange.request][0]

    def messages(self, exchange: Exchange) -> list[bytes]:
        return [each[0] for each in self.ear.chunks.get(exchange.request, ())]


Play = Callable[..., None]


@pytest.fixture
def play() -> Play:
    """Play a scene with a transport against a server that plays a script on each connection."""

    def play(
        script: Script, scene: Callable[[Scene], Awaitable[None]], *, scheme: str = "grpc",
        server: dict[str, Any] | None = None, certificate: Certificate | None = None, alpn: tuple[str, ...] = ("h2",),
        mutual: bool = False, **settings: Any,
    ) -> None:  # fmt: skip
        faults: list[str] = []

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, about: faults.append(f"{about['message']}: {about.get('exception')!r}"))
            context = None
            if certificate is not None:
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.load_cert_chain(certificate.cert, certificate.key)
                if mutual:
                    context.verify_mode = ssl.CERT_REQUIRED
                    context.load_verify_locations(certificate.cert)
                if alpn:
                    context.set_alpn_protocols(list(alpn))
            there = Server(script, **(server or {}))
            listening = await there.start(context)
            url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            tls = TlsPlan(ca_file=None if certificate is None else str(certificate.cert))
            ear, given = Ear(), msgspec.structs.replace(TransportSettings(urls=(url,), tls=tls), **settings)
            transport = Http2Transport(given, ear, loop)
            await transport.open()
            try:
                await asyncio.wait_for(scene(Scene(transport, there, ear, url)), PATIENCE_S)
            finally:
                await transport.close()
                listening.close()
            await asyncio.gather(*(task for task in there.tasks if task is not None))
            assert not there.faults, there.faults
            assert [ends for ends in ear.ends.values() if len(ends) > 1] == [], "done was called more than once"
            assert transport.links == set()

        asyncio.run(whole())
        assert not faults, faults

    return play
