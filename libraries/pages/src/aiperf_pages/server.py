"""A server on a local port: the socket, the limits of connections, and an end that waits for nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any

from aiohttp import web

from aiperf_pages.guard import Guard, Handler, add_headers, middleware, refused, set_headers

MOST_CONNECTIONS = 256
_MOST_REFUSALS = 64
REQUEST_S = 10.0
"""Longest time from a connection, or the first byte of a request, to the whole of its headers."""
_IDLE_S = 30.0
_END_S = 0.5
_REFUSED_S = 2.0
_REST_S = 2.0
"""Longest time in which the rest of a refused request is read: a client that still sends would never see the answer."""
STUCK_S = 60.0
"""Longest time in which a client that gets an answer may read nothing."""
MOST_BODY_BYTES = 1 << 16
_QUIET = logging.Logger("aiperf_pages.bytes", logging.CRITICAL)
"""Takes what aiohttp says of bytes that are no HTTP: the client gets an answer, and the log nothing."""


class Doors:
    """The connections of a server, at most *most*; one beyond is told so and closed.

    A connection that does not send the whole headers of a request within *request_s* is closed, and one that has answers to
    read and reads nothing for *stuck_s* (Linux; elsewhere it is not seen).  media: the content type of errors that are told
    before a request has come whole.
    """

    def __init__(
        self, most: int = MOST_CONNECTIONS, request_s: float = REQUEST_S, stuck_s: float = STUCK_S,
        media: str = "application/json",
    ) -> None:  # fmt: skip
        self.most, self.request_s, self.stuck_s, self.media = most, request_s, stuck_s, media
        self.open: dict[Any, Door] = {}
        self.refused = 0

    @property
    def middleware(self) -> Any:
        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            door = self.open.get(request.protocol)
            if door is None:
                return await handler(request)
            door.begin()
            try:
                return await handler(request)
            finally:
                door.end()

        return counted


class Door(asyncio.Protocol):
    """One connection, before the protocol that reads its requests."""

    def __init__(self, doors: Doors, inner: Any) -> None:
        self._doors, self._inner = doors, inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refused = self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._doors.open) >= self._doors.most:
            self._refused = True
            self._doors.refused += 1
            if self._doors.refused > _MOST_REFUSALS:
                transport.abort()
                return
            self._arm(_REFUSED_S)  # the sentence goes behind the request: before it, some clients never see it
            return
        self._doors.open[self._inner] = self
        _bound_silence(transport, self._doors.stuck_s)
        self._inner.connection_made(transport)
        self._arm(self._doors.request_s)

    def begin(self) -> None:
        """A request has come whole."""
        self._busy = True
        self._disarm()

    def end(self) -> None:
        """Its answer is made."""
        self._busy = False

    def data_received(self, data: bytes) -> None:
        if self._refused:
            if self._transport is not None and not self._transport.is_closing():
                self._transport.write(_full(self._doors))
                self._transport.close()
            return
        if not self._busy and self._timer is None:
            self._arm(self._doors.request_s)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._refused else self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._refused:
            self._doors.refused -= 1
            return
        self._doors.open.pop(self._inner, None)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if not self._refused:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if not self._refused:
            self._inner.resume_writing()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._transport is None or self._busy:
            return
        if not self._refused:
            sentence = f"no whole request came within {self._doors.request_s:g} s"
            self._transport.write(_raw(408, "Request Timeout", sentence, self._doors.media))
        self._transport.close()


class HttpConversation(web.RequestHandler):
    """The requests of a connection; what is no HTTP gets a sentence of this *media* type."""

    def __init__(self, manager: web.Server, media: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager, loop=loop, access_log=_QUIET, keepalive_timeout=_IDLE_S, lingering_time=_REST_S, logger=_QUIET,
        )  # fmt: skip
        self._media = media

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:  # fmt: skip
        super().handle_error(request, status, exc, message)  # which raises where an answer has begun
        why = [*(message or "").strip().splitlines(), "its bytes can't be read"][0]
        sentence = "the server failed to make this answer" if status >= 500 else f"no request of HTTP came: {why[:200]}"
        made = refused(status, sentence)
        made.content_type = self._media
        set_headers(made)
        made.force_close()
        return made


def _bound_silence(transport: asyncio.Transport, seconds: float) -> None:
    """Let the system close a connection whose other end takes no byte for so long."""
    own = transport.get_extra_info("socket")
    if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(seconds * 1000))


def _full(doors: Doors) -> bytes:
    sentence = f"{doors.most} connections are open, which is the most; close one, or try again"
    return _raw(503, "Service Unavailable", sentence, doors.media)


def _raw(status: int, reason: str, sentence: str, media: str) -> bytes:
    body = json.dumps({"detail": sentence}).encode()
    about = f"Content-Type: {media}\r\nContent-Length: {len(body)}"
    head = [f"HTTP/1.1 {status} {reason}", about, "Connection: close"]
    return "\r\n".join([*head, "", ""]).encode() + body


class Server:
    """Serves *app* on a listening socket, behind *guard*."""

    def __init__(self, app: web.Application, guard: Guard, listening: socket.socket, doors: Doors | None = None) -> None:
        self._app, self._guard, self._listening = app, guard, listening
        self._doors = doors or Doors()
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._app.middlewares.insert(0, middleware(self._guard))
        self._app.middlewares.insert(0, self._doors.middleware)
        self._app.on_response_prepare.append(add_headers)
        self._runner = web.AppRunner(self._app, handle_signals=False, shutdown_timeout=_END_S)
        await self._runner.setup()
        factory = self._runner.server
        assert factory is not None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Door(self._doors, HttpConversation(factory, self._doors.media, loop)), sock=self._listening
        )

    async def stop(self) -> None:
        """Close the port and every connection, within about a second."""
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()


def application() -> web.Application:
    """An application whose requests may have a small body."""
    return web.Application(client_max_size=MOST_BODY_BYTES)


async def serve_until_signal(server: Server, over: asyncio.Event, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, or until *over* is set.  *ready* is called once both signals end it so."""
    loop = asyncio.get_running_loop()
    for number_ in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number_, over.set)
    await server.start()
    ready()
    await over.wait()
    await server.stop()


__all__ = [
    "MOST_BODY_BYTES", "MOST_CONNECTIONS", "REQUEST_S", "STUCK_S", "Door", "Doors", "HttpConversation", "Server", "application",
    "serve_until_signal",
]  # fmt: skip
