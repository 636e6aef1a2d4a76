"""What a request's times are, and what became of it, from what aiohttp and its connections tell."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from contextvars import ContextVar
from errno import EPIPE
from fcntl import ioctl
from functools import partial
from termios import TIOCOUTQ
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiperf import RECONNECTED, RESENT, REUSED, Exchange
from aiperf.sdk.transport import MOST_INTERIM, NO_TLS

_WRITE_BYTES = 65536
_TCP_INFO_BYTES, _BYTES_ACKED, _BYTES_ACKED_AT = 128, struct.Struct("=Q"), 120
"""``tcpi_bytes_acked`` of linux/tcp.h: a u64 at byte 120."""
_CLOSE, _CLOSE_WAIT = 7, 8
"""``tcpi_state``, the first byte."""


DIALING: ContextVar[Exchange | None] = ContextVar("dialing", default=None)
"""The exchange of the task that connects."""


def traced(connected: Callable[[Exchange], None]) -> aiohttp.TraceConfig:
    """Hooks that fill in an exchange's times; *connected* is called for each new connection."""

    async def resolving(_: object, context: SimpleNamespace, about: object) -> None:
        context.resolving_ns = monotonic_ns()

    async def resolved(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.dns_ns += monotonic_ns() - context.resolving_ns

    async def connecting(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.flags &= ~REUSED
        context.connecting_ns = monotonic_ns()
        context.dns_before_ns = exchange.dns_ns

    async def connected_now(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.connected_ns = monotonic_ns()
        exchange.connect_ns = exchange.connected_ns - context.connecting_ns - (exchange.dns_ns - context.dns_before_ns)
        connected(exchange)

    async def reused(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.flags |= REUSED
        exchange.connected_ns = monotonic_ns()

    async def sending(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.sent_ns = monotonic_ns()
        exchange.sent_end_ns = 0

    config = aiohttp.TraceConfig()
    config.on_dns_resolvehost_start.append(resolving)
    config.on_dns_resolvehost_end.append(resolved)
    config.on_connection_create_start.append(connecting)
    config.on_connection_create_end.append(connected_now)
    config.on_connection_reuseconn.append(reused)
    config.on_request_headers_sent.append(sending)
    return config


class UnreadError(aiohttp.ServerDisconnectedError):
    """A connection was lost with the error *lost*, and the server can't have the request: *flag* is RECONNECTED or RESENT."""

    def __init__(self, flag: int, lost: BaseException) -> None:
        super().__init__(str(lost))
        self.flag, self.lost = flag, lost


class NoTlsError(TimeoutError):
    """A TCP connection was opened, and the server did not answer to TLS within so many seconds."""

    def __init__(self, server: str, within_s: float | None) -> None:
        super().__init__()
        self.message = f"{server}: {NO_TLS} within {within_s or 0:g} s"


class Listener(ResponseHandler):
    """A connection that knows whether the server can have got a request: aiohttp doesn't tell.

    It asks the kernel, where each request begins and where the connection ends, for the bytes that the server has acknowledged;
    both take 1 µs.  It ends an answer whose head takes longer than *head_s*, or comes behind too many interim ones.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, head_s: float) -> None:
        super().__init__(loop)
        self._head_s, self._began_s = head_s, 0.0
        self._in_head, self._answered = False, False
        self._interim = 0
        self._unread = 0  # RECONNECTED or RESENT once the connection has ended without the server's having the request
        self._acknowledged = self._written = 0  # bytes of all requests before

    def set_response_params(self, **given: Any) -> None:
        """A request begins: aiohttp calls it with what it expects of the answer."""
        self._answered, self._unread = False, 0
        self._acknowledged, waiting = self._sent()
        self._written = self._acknowledged + waiting
        super().set_response_params(**given)

    def _sent(self) -> tuple[int, int]:
        """Bytes that the server has acknowledged, and bytes written that it has not; -1 where this machine doesn't tell."""
        sock = None if self.transport is None else self.transport.get_extra_info("socket")
        if sock is None:
            return -1, 0
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            waiting = int.from_bytes(ioctl(sock.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
        except OSError:
            return -1, 0
        return (_BYTES_ACKED.unpack_from(info, _BYTES_ACKED_AT)[0], waiting) if len(info) == _TCP_INFO_BYTES else (-1, 0)

    def _ended(self) -> bool:
        """Whether the server's FIN has come: a reset behind it is EPIPE on Linux."""
        sock = None if self.transport is None else self.transport.get_extra_info("socket")
        if sock is None:
            return False
        try:
            state: int = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
            failed: int = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        except OSError:
            return False
        return state == _CLOSE_WAIT or (state == _CLOSE and failed == EPIPE)

    def _look(self, *, ended: bool) -> None:
        """Find out, while the socket is there, whether the server can have got the request."""
        acknowledged, waiting = self._sent()
        if self._answered or acknowledged < 0 or self._acknowledged < 0 or self._unread:
            return
        if acknowledged + waiting == self._written:
            self._unread = RECONNECTED
        elif ended and acknowledged <= self._written:
            self._unread = RESENT

    def eof_received(self) -> None:
        # On TLS this may be close_notify alone: TCP's end tells.
        self._look(ended=self._ended())
        if self._unread and isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()  # what waits to be written must not go out behind the verdict
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._look(ended=isinstance(exc, BrokenPipeError))
        super().connection_lost(exc)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        if isinstance(exc.__cause__, aiohttp.ClientConnectionResetError):
            self._look(ended=False)  # a write was refused: the loop knows that the connection is lost, and has not yet said so
        if self._unread and not isinstance(exc, UnreadError):
            exc = UnreadError(self._unread, exc)
        super().set_exception(exc, *cause)

    async def read(self) -> Any:
        """The next head, with its body."""
        self._in_head, self._began_s = True, 0.0
        try:
            message, payload = await super().read()
        finally:
            self._in_head = False
        self._interim = self._interim + 1 if 100 <= message.code < 200 else 0
        if self._interim > MOST_INTERIM:
            raise aiohttp.ClientError(f"not HTTP: more than {MOST_INTERIM} interim answers (1xx) before the one that counts")
        return message, payload

    def data_received(self, data: bytes) -> None:
        self._answered = True
        if self._in_head:
            now_s = self._loop.time()
            self._began_s = self._began_s or now_s
            if now_s - self._began_s > self._head_s:
                self.set_exception(aiohttp.ClientError(f"not HTTP: the head took longer than {self._head_s:g} s"))
                return
        super().data_received(data)


class Connector(aiohttp.TCPConnector):
    """Makes :class:`Listener` connections."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop, head_s: float, **options: Any) -> None:
        super().__init__(loop=loop, **options)
        handler: Callable[..., ResponseHandler] = Listener
        self._factory = partial(handler, loop=loop, head_s=head_s)

    async def _wrap_create_connection(
        self, *args: Any, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout, **about: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        """Connect, and tell a TCP connection without TLS from none: aiohttp's error is the same for both."""
        factory, *others = args
        listeners: list[ResponseHandler] = []
        began_ns = monotonic_ns()

        def listener() -> ResponseHandler:
            listeners.append(factory())  # the loop asks for it when TCP is connected
            if (exchange := DIALING.get()) is not None and about.get("ssl"):
                exchange.connect_ns = max(1, monotonic_ns() - began_ns)  # until the handshake is over, too
            return listeners[-1]

        try:
            return await self._connected(listener, *others, req=req, timeout=timeout, **about)
        except TimeoutError as error:
            if listeners and about.get("ssl"):
                raise NoTlsError(f"{req.url.host}:{req.url.port}", timeout.sock_connect) from error
            raise


    async def _connected(self, *args: Any, **about: Any) -> tuple[asyncio.Transport, ResponseHandler]:
        """The connection, as aiohttp makes it."""
        return await super()._wrap_create_connection(*args, **about)


class StampedBody(aiohttp.BytesPayload):
    """A body in pieces that don't hold the loop up; it stamps the time when aiohttp has taken the last piece."""

    def __init__(self, exchange: Exchange, written: Callable[[Exchange], None]) -> None:
        # Not given to the base class, which warns of long bodies because it writes them at once.
        super().__init__(b"", content_type="application/octet-stream")
        self._body = memoryview(exchange.body)
        self._size = len(exchange.body)
        self._exchange = exchange
        self._written = written

    async def write(self, writer: AbstractStreamWriter) -> None:
        for start in range(0, len(self._body), _WRITE_BYTES):
            await writer.write(self._body[start : start + _WRITE_BYTES])
        self._exchange.sent_end_ns = monotonic_ns()
        if self._exchange.armed:
            self._written(self._exchange)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return self._exchange.body

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._exchange.body.decode(encoding, errors)
