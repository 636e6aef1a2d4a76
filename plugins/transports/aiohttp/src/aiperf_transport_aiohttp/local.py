"""Connections to a socket of this machine (``unix:///run/server.sock``)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_exceptions import UnixClientConnectorError
from aiohttp.client_proto import ResponseHandler
from aiperf import RECONNECTED, Exchange

from aiperf_transport_aiohttp.tracing import DIALING, Listener

_FULL_S = 0.002
"""Until the next attempt where the server has more connections to accept than it may have waiting."""


class LocalListener(Listener):
    """A connection without TCP: whether a byte was written is all that is known of what the server has."""

    def __init__(self, loop: asyncio.AbstractEventLoop, head_s: float) -> None:
        super().__init__(loop, head_s)
        self._exchange: Exchange | None = None

    def set_response_params(self, **given: Any) -> None:
        self._exchange = DIALING.get()
        super().set_response_params(**given)

    def _look(self, *, ended: bool) -> None:
        if not self._answered and self._exchange is not None and not self._exchange.sent_ns:
            self._unread = RECONNECTED


class LocalConnector(aiohttp.UnixConnector):
    """Makes :class:`LocalListener` connections to the socket *path*."""

    def __init__(self, *, path: str, loop: asyncio.AbstractEventLoop, head_s: float, **options: Any) -> None:
        super().__init__(path, loop=loop, **options)
        handler: Callable[..., ResponseHandler] = LocalListener
        self._factory = partial(handler, loop=loop, head_s=head_s)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            async with asyncio.timeout(timeout.sock_connect):
                # asyncio takes EAGAIN for a connection under way.
                while (code := sock.connect_ex(self.path)) == errno.EAGAIN:
                    await asyncio.sleep(_FULL_S)
                if code:
                    error = OSError(code, os.strerror(code))
                    raise UnixClientConnectorError(self.path, req.connection_key, error) from error
                _, made = await self._loop.create_unix_connection(self._factory, sock=sock)
        except BaseException:
            sock.close()
            raise
        return made
