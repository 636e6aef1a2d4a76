"""Calls of the run's servers before the load, over the run's transport: for endpoints that ask, and for their readiness."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from time import monotonic_ns
from typing import Any
from uuid import uuid4

import msgspec

from aiperf import __version__, environment
from aiperf.errors import AiperfError, PluginError
from aiperf.redaction import scrubbed, without_secrets
from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import blamed, endpoint_of, made, why
from aiperf.sdk.asking import ASK_S, AskError, Reply
from aiperf.sdk.headers import merged
from aiperf.sdk.model import ErrorDetails, HttpRequest, join_url
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.transport import Exchange, Shape, Transport, TransportSettings

_MOST_BYTES = 64 << 20
"""Of an answer."""
_MOST_PREPARED = 16 << 20
"""Of what an endpoint prepares, as JSON: it stands in ``run.json``, and each process reads it."""


class _Call:
    """What is heard of a call.  end: the error of its exchange, None of a whole answer."""

    __slots__ = ("end", "head", "messages", "pieces", "tail")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pieces: list[bytes] = []
        self.messages: list[bytes] = []
        self.head: dict[str, str] = {}
        self.tail: dict[str, str] = {}
        self.end: asyncio.Future[ErrorDetails | None] = loop.create_future()

    def reply(self, status: int) -> Reply:
        return Reply(status, b"".join(self.pieces), tuple(self.messages), self.head, self.tail)


class _CallSink:
    """Notes what it hears in the call that owns the exchange."""

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        _call(exchange).pieces.append(body)

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        _call(exchange).messages.append(data)

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        _call(exchange).head.update((name.lower(), value) for name, value in headers)

    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None:
        _call(exchange).tail.update((name.lower(), value) for name, value in trailers)

    def written(self, exchange: Exchange) -> None:
        """Nothing waits for it."""

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        if not (end := _call(exchange).end).done():
            end.set_result(error)


def _call(exchange: Exchange) -> _Call:
    assert isinstance(exchange.owner, _Call)
    return exchange.owner


class Asker:
    """Asks one server, in the calling thread, with a loop and a transport of its own, which are made for the first call."""

    def __init__(self, plan: Plan, secrets: Secrets, url: str | None = None) -> None:
        self._plan, self._secrets = plan, secrets
        self._base = plan.target.urls[0] if url is None else url
        self.url, self.scheme, self.models = without_secrets(self._base), plan.target.scheme, plan.target.models
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: Transport

    def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(self._asked(request, timeout_s))
        except AiperfError as error:
            error.message = scrubbed(error.message, self._secrets.texts)
            raise

    def close(self) -> None:
        """Close the connections.  May be called again."""
        loop, self._loop = self._loop, None
        if loop is not None:
            with contextlib.suppress(Exception), contextlib.closing(loop):  # code of a plugin; what was asked is known
                if hasattr(self, "_transport"):
                    loop.run_until_complete(self._transport.close())

    async def _asked(self, request: HttpRequest, timeout_s: float) -> Reply:
        ref, loop = self._plan.plugins.transport, asyncio.get_running_loop()
        call = _Call(loop)
        with blamed(ref, "can't ask the server"):
            if not hasattr(self, "_transport"):
                self._transport = self._made(loop)
                await self._transport.open()
            exchange = self._exchange(request, timeout_s)
            exchange.owner = call
            limit = loop.call_later(timeout_s, self._late, exchange, timeout_s)
            self._transport.send(exchange)
            error = await call.end
            limit.cancel()
        if error is not None:
            raise AskError(f"{self.url} gives no answer to {request.path or '/'}: {error.message}", code=error.code)
        return call.reply(exchange.status)

    def _late(self, exchange: Exchange, timeout_s: float) -> None:
        self._transport.abort(exchange, ErrorDetails(f"none came within {timeout_s:g} s", type="TimeoutError"))

    def _made(self, loop: asyncio.AbstractEventLoop) -> Transport:
        plan, target = self._plan, self._plan.target
        settings = TransportSettings(
            (self._base,), target.tls, stamps=False, keep_heads=True, family=environment.ip_version(),
            trust_env=environment.trust_env(), most_bytes=_MOST_BYTES,
        )  # fmt: skip
        sink, hooks = _CallSink(), Hooks.load(plan.plugins.hooked("aiperf_make_transport"))
        transport: Transport | None = hooks.call("aiperf_make_transport", settings=settings, sink=sink, loop=loop)
        return made(plan.plugins.transport, settings, sink, loop) if transport is None else transport

    def _exchange(self, request: HttpRequest, timeout_s: float) -> Exchange:
        headers = {"User-Agent": f"aiperf/{__version__}", "Accept": "*/*"}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        own = {name: value for name, value in self._secrets.headers.items() if name.lower() != "accept-encoding"}
        shape = Shape(join_url(self._base, request.path), merged(merged(headers, request.headers), own), (), request.method)
        now_ns = monotonic_ns()
        exchange = Exchange(next(self._numbers), shape, request.body, str(uuid4()), "", now_ns)
        exchange.deadline_ns = now_ns + round(timeout_s * 1e9)
        return exchange


def prepared(plan: Plan, secrets: Secrets) -> Plan:
    """The plan with what its endpoint has learned of the server.

    Raises:
        AiperfError: The server gives no answer, or not the one that the endpoint needs.
        PluginError: The endpoint fails, or its result is none for JSON.
    """
    ref, endpoint, ask = plan.plugins.endpoint, endpoint_of(plan), Asker(plan, secrets)
    try:
        with contextlib.closing(ask), blamed(ref, "can't prepare"):
            result = endpoint.prepare(ask)
    except AskError as error:
        error.hints = (*error.hints, f"{ref.name} asks the server before the load; --wait-for-model-timeout waits for it")
        raise
    if result is None:
        return plan
    try:
        written = msgspec.json.encode(result)
        kept = msgspec.json.decode(written, type=dict[str, Any])
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise PluginError(f"{ref} prepared something that JSON can't keep: {why(error)}") from error
    if len(written) > _MOST_PREPARED:
        raise PluginError(f"{ref} prepared {len(written):,} bytes; at most {_MOST_PREPARED:,} are kept")
    return plan.replacing(prepared=kept)
