"""HTTP/1.1 on aiohttp: it supports proxies, at the price of later time stamps."""

from __future__ import annotations

import asyncio
import weakref
from functools import partial
from time import monotonic_ns

import aiohttp
from aiohttp.client_exceptions import UnixClientConnectorError
from aiperf import (
    NO_STAMP,
    REUSED,
    STREAMED,
    ErrorDetails,
    Exchange,
    Shape,
    Sink,
    TransportSettings,
    tls_context,
)
from aiperf.sdk.transport import END_MARKER, REFUSED, UNIX, connect_error
from yarl import URL

from aiperf_transport_aiohttp.sessions import Sessions
from aiperf_transport_aiohttp.socks import SocksError, check_installed
from aiperf_transport_aiohttp.tracing import DIALING, NoTlsError, StampedBody, UnreadError
from aiperf_transport_aiohttp.ways import Way, way_to

_WARM_S = 5.0
_WARM_AT_ONCE = 64
"""Connections that are opened together ahead of the load."""
_REST_NS = 5_000_000
"""A server that closes its connection behind a stream without having said so (llama.cpp) has done it by then."""


class _Target:
    """URL, headers and proxy of all requests of one shape, in the types of aiohttp.  by: what connections are made by.
    server: what they lead to."""

    shape: weakref.ref[Shape]

    def __init__(self, shape: Shape, way: Way) -> None:
        self.url, self.proxy, self.by = way
        self.server = self.by, self.url.origin()
        self.headers = dict(shape.headers)
        if "accept-encoding" not in {name.lower() for name in shape.headers}:
            self.headers["Accept-Encoding"] = "identity"

    def headers_of(self, exchange: Exchange) -> dict[str, str]:
        headers = {**self.headers, "Content-Length": str(len(exchange.body)), "X-Request-ID": exchange.request_id}
        return headers | dict.fromkeys(exchange.shape.session_headers, exchange.session_id)

    def written(self, exchange: Exchange) -> list[tuple[str, str]]:
        """The headers as aiohttp writes them: before the others Host, without the port that its scheme has by default."""
        headers, host = self.headers_of(exchange), self.url.raw_host or ""
        host = f"[{host}]" if ":" in host else host
        host = host if self.url.is_default_port() else f"{host}:{self.url.port}"
        return [*(() if "host" in {name.lower() for name in headers} else [("Host", host)]), *headers.items()]


class _Flight:
    """An exchange on its way.  over: ``done`` was called."""

    __slots__ = ("exchange", "over", "response", "task")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.over = False
        self.response: aiohttp.ClientResponse | None = None
        self.task: asyncio.Task[None] | None = None


class AiohttpTransport:
    """Registered as ``aiohttp`` under ``aiperf.transports``.  One task per request."""

    stamps = "read"

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        self._sessions = Sessions(settings, loop, self._connected)
        self._trouble: ErrorDetails | None = None
        self._targets: dict[int, _Target] = {}
        self._flights: set[_Flight] = set()
        self._reads = 0
        self._opened = 0
        self._streamed_ns: dict[object, int] = {}
        self._keep: set[object] = set()
        self._carried: weakref.WeakSet[object] = weakref.WeakSet()

    @property
    def statistics(self) -> dict[str, int]:
        """Every read is without a kernel stamp; whether reads were merged can't be known."""
        return {"reads": self._reads, "stamps_missing": self._reads, "coalesced_reads": 0, "opened": self._opened}

    async def open(self) -> None:
        """Load certificates.  What is wrong with them becomes every request's error.

        Raises:
            ConfigError: The packages for a proxy are missing.
        """
        for url in self.settings.urls:
            if isinstance(proxy := self._way(url).by, URL):
                check_installed(proxy)
        try:
            context = tls_context(self.settings.tls)
        except OSError as error:  # ssl.SSLError is one
            plan = self.settings.tls
            files = ", ".join(name for name in (plan.ca_file, plan.client_cert, plan.client_key) if name)
            self._trouble = ErrorDetails(f"{files or 'certificates'}: {error.strerror or error}", type=type(error).__name__)
            return
        self._sessions.context = context

    async def warm(self, connections: int) -> None:
        """Connections in the pool before the first request; those that can't be opened are left to the requests."""
        if self._sessions.context is None or not self.settings.reuse or self.settings.sticky:
            return
        opened: list[aiohttp.connector.Connection] = []
        try:
            async with asyncio.timeout(_WARM_S):
                for way in map(self._way, self.settings.urls):
                    for first in range(0, connections, _WARM_AT_ONCE):
                        count = min(_WARM_AT_ONCE, connections - first)
                        opening = [self._connection(way) for _ in range(count)]
                        results = await asyncio.gather(*opening, return_exceptions=True)
                        opened += [result for result in results if isinstance(result, aiohttp.connector.Connection)]
                        if any(isinstance(result, BaseException) for result in results):
                            break
        except TimeoutError:
            pass
        finally:
            for connection in opened:  # at the end: the pool would reuse a connection that is released early
                connection.release()

    async def _connection(self, way: Way) -> aiohttp.connector.Connection:
        pool = self._sessions.shared(way.by, reuse=True)
        connector = pool.connector
        assert connector is not None
        # The same request that send() makes, as far as the pool's key goes.
        request = aiohttp.ClientRequest("POST", way.url, loop=self.loop, session=pool, proxy=way.proxy)
        connection = await connector.connect(request, [], aiohttp.ClientTimeout())
        self._opened += 1
        return connection

    def send(self, exchange: Exchange) -> None:
        flight = _Flight(exchange)
        exchange.connection = flight
        self._flights.add(flight)
        flight.task = self.loop.create_task(self._fly(flight))

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        flight = exchange.connection
        if isinstance(flight, _Flight):
            if flight.response is not None:
                flight.response.close()
            if flight.task is not None:
                flight.task.cancel()
            self._done(flight, error)

    async def close(self) -> None:
        flights = list(self._flights)
        tasks = [flight.task for flight in flights if flight.task is not None]
        for flight in flights:
            flight.over = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._sessions.close()

    def _connected(self, exchange: Exchange) -> None:
        self._opened += 1

    async def _fly(self, flight: _Flight) -> None:
        """The exchange from start to end; nothing but a cancellation escapes."""
        exchange = flight.exchange
        DIALING.set(exchange)
        error: ErrorDetails | None = None
        try:
            await self._attempts(flight)
        except asyncio.CancelledError:
            if flight.over:  # by abort or close
                return
            raise
        except Exception as trouble:  # noqa: BLE001  # whatever a resolver, proxy or parser raises is this request's error
            error = _described(trouble)
        finally:
            if flight.response is not None:
                flight.response.close()  # a whole answer has given its connection back already
                flight.response = None
        exchange.connection = None
        self._done(flight, error)

    def _done(self, flight: _Flight, error: ErrorDetails | None) -> None:
        self._flights.discard(flight)
        if self.settings.sticky and (error is not None or flight.exchange.final):
            self.part(flight.exchange.session_id)
        if not flight.over:
            flight.over = True
            self.sink.done(flight.exchange, error)

    def part(self, session_id: str) -> None:
        """Close a session's own connection."""
        self._sessions.part(session_id)

    async def _attempts(self, flight: _Flight) -> None:
        exchange = flight.exchange
        if self._sessions.context is None:
            raise _RefusedError(self._trouble or ErrorDetails("the transport is not open", type="RuntimeError"))
        target = self._target(exchange.shape)
        by = target.by
        try:
            session = self._sessions.shared(by, reuse=False) if self._rests(target) else self._sessions.of(exchange, by)
            await self._ask(session, flight)
        except UnreadError as error:
            # The server has closed the idle connection, and can't have got the request.  This is the only retry.
            if not exchange.flags & REUSED:
                raise
            exchange.flags = (exchange.flags | error.flag) & ~REUSED
            exchange.connected_ns = exchange.sent_ns = exchange.sent_end_ns = 0
            await self._ask(self._sessions.shared(by, reuse=False), flight)

    def _rests(self, target: _Target) -> bool:
        """Whether a connection of the pool may be one that the server is about to close: a stream has just ended, and none of
        its connections has carried an answer behind a stream so far."""
        return (
            not self.settings.sticky
            and target.server not in self._keep
            and monotonic_ns() - self._streamed_ns.get(target.server, -_REST_NS) < _REST_NS
        )

    async def _ask(self, session: aiohttp.ClientSession, flight: _Flight) -> None:
        exchange = flight.exchange
        target = self._target(exchange.shape)
        response = await session.request(
            exchange.shape.method,
            target.url,
            data=StampedBody(exchange, self.sink.written) if exchange.body else None,
            headers=target.headers_of(exchange),
            allow_redirects=False,
            proxy=target.proxy,
            trace_request_ctx=exchange,
        )
        flight.response = response
        exchange.ack_ns = monotonic_ns()
        if not exchange.body:
            exchange.sent_end_ns = exchange.sent_ns
            if exchange.armed:
                self.sink.written(exchange)
        status = response.status
        if status < 100:
            raise _RefusedError(ErrorDetails(f"not HTTP: status {status:03}", type="InvalidHttpResponse"))
        exchange.status = status
        if status == 101:
            raise _RefusedError(ErrorDetails("the server wants to switch protocols", type="UpgradeRefused"))
        kind = response.headers.get("Content-Type", "").lower()
        protocol = response.connection.protocol if response.connection is not None else None
        if protocol in self._carried:
            self._keep.add(target.server)
        if kind.startswith("text/event-stream"):
            exchange.flags |= STREAMED
            if protocol is not None:
                self._carried.add(protocol)
        odd = "Content-Encoding" in response.headers or (kind and not exchange.flags & STREAMED and "json" not in kind)
        if self.settings.keep_heads or odd or status >= 300:
            # The names are strings of aiohttp's own kind, which a journal can't take.
            answered = [(str(name), value) for name, value in response.headers.items()]
            self.sink.head(exchange, status, response.reason or f"HTTP {status}", answered)
        content, most_bytes, body = response.content, self.settings.most_bytes, b""
        while True:
            if exchange.flags & STREAMED and body.rstrip().endswith(END_MARKER):
                try:
                    async with asyncio.timeout(self.settings.end_s):
                        body = await content.readany()
                except TimeoutError:  # the server leaves the stream open: it is over all the same
                    return
            else:
                body = await content.readany()
            read_ns = monotonic_ns()
            if not body:
                if exchange.flags & STREAMED:
                    self._streamed_ns[target.server] = read_ns
                return
            self._reads += 1
            exchange.bytes_received += len(body)
            if self.settings.stamps:
                exchange.flags |= NO_STAMP
            self.sink.chunk(exchange, body, 0, read_ns, 0)
            if exchange.bytes_received > most_bytes and not exchange.shape.drains(status):
                raise _RefusedError(ErrorDetails(f"the answer is longer than {most_bytes:,} bytes", type="AnswerTooLong"))

    def request_headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        return self._target(exchange.shape).written(exchange)

    def _way(self, url: str) -> Way:
        return way_to(url, self.settings.urls, trust_env=self.settings.trust_env)

    def _target(self, shape: Shape) -> _Target:
        target = self._targets.get(id(shape))
        if target is None:
            target = self._targets[id(shape)] = _Target(shape, self._way(shape.url))
            # Dropped with the shape: a hook may give every request a shape of its own.
            target.shape = weakref.ref(shape, partial(self._targets.pop, id(shape)))
        return target


class _RefusedError(Exception):
    """An end that is described already."""

    def __init__(self, details: ErrorDetails) -> None:
        super().__init__(details.message)
        self.details = details


def _described(error: Exception) -> ErrorDetails:
    if isinstance(error, _RefusedError | SocksError):
        return error.details
    if isinstance(error, UnixClientConnectorError):
        return connect_error(f"{UNIX}://{error.path}", error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return connect_error(f"{error.host}:{error.port}", error.os_error)
    if isinstance(error, UnreadError):
        error = error.lost if isinstance(error.lost, Exception) else error
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return ErrorDetails("the server closed the connection before a whole answer was in", type=type(error).__name__)
    if isinstance(error.__cause__, NoTlsError):
        return ErrorDetails(error.__cause__.message, type=type(error).__name__, cause=REFUSED)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ErrorDetails(str(error), type=type(error).__name__, cause=REFUSED)
    cause = error.__cause__
    return ErrorDetails(
        str(error) or repr(error),
        type=type(error).__name__,
        cause=repr(cause) if cause is not None else None,
    )


__all__ = ["AiohttpTransport"]
