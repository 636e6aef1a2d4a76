"""Times of a request, from what aiohttp tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter
from aiperf import RECONNECTED, REUSED, Exchange

_WRITE_BYTES = 65536
_MOST_INTERIM = 100
"""Answers below 200 before the one that counts: more are no HTTP that anyone speaks."""


def traced(connected: Callable[[Exchange], None]) -> aiohttp.TraceConfig:
    """Hooks that fill in an exchange's times; *connected* is called for each new connection."""

    async def resolving(_: object, context: SimpleNamespace, about: object) -> None:
        context.resolving_ns = monotonic_ns()

    async def resolved(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        exchange.dns_ns += monotonic_ns() - context.resolving_ns

    async def connecting(_: object, context: SimpleNamespace, about: object) -> None:
        exchange: Exchange = context.trace_request_ctx
        _repeated(exchange)
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
        _repeated(exchange)
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


def _repeated(exchange: Exchange) -> None:
    """aiohttp itself sends GET and HEAD again when a reused connection turns out to be dead."""
    if exchange.sent_ns and exchange.flags & REUSED:
        exchange.flags |= RECONNECTED


class Listener(ResponseHandler):
    """A connection that counts what it receives: of one that was reset, aiohttp doesn't tell whether an answer had begun.

    It ends an answer whose head takes longer than *head_s*, or comes behind too many interim ones.
    """

    received = 0

    def __init__(self, loop: asyncio.AbstractEventLoop, head_s: float) -> None:
        super().__init__(loop)
        self._head_s, self._began_s = head_s, 0.0
        self._in_head = False
        self._interim = 0

    async def read(self) -> Any:
        """The next head, with its body."""
        self._in_head, self._began_s = True, 0.0
        try:
            message, payload = await super().read()
        finally:
            self._in_head = False
        self._interim = self._interim + 1 if 100 <= message.code < 200 else 0
        if self._interim > _MOST_INTERIM:
            raise aiohttp.ClientError(f"not HTTP: more than {_MOST_INTERIM} interim answers")
        return message, payload

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
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


class StampedBody(aiohttp.BytesPayload):
    """A body in pieces that don't hold the loop up; it stamps the time when aiohttp has taken the last piece."""

    def __init__(self, exchange: Exchange, written: Callable[[Exchange], None]) -> None:
        # Not given to the base class, which warns of long bodies because it writes them at once.
        super().__init__(b"", content_type="application/octet-stream")
        self._body = memoryview(exchange.body)
        self._size = len(exchange.body)
        self._exchange = exchange
        self._written = written
        self._listener: Listener | None = None
        self._received = 0

    @property
    def answered(self) -> bool:
        """Whether a byte has come since the body was first written."""
        return self._listener is not None and self._listener.received > self._received

    async def write(self, writer: AbstractStreamWriter) -> None:
        if isinstance(writer, StreamWriter) and isinstance(writer.protocol, Listener):
            self._listener, self._received = writer.protocol, writer.protocol.received
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
