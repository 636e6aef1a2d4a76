"""The API on its port: its limits, and the loop that takes what the run tells."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

from aiohttp import web
from aiperf.sdk.live import LiveFeed
from aiperf_pages.guard import Guard, Handler
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Server, application
from aiperf_pages.tokens import new_token

from aiperf_live_api.board import Board
from aiperf_live_api.limits import Limits
from aiperf_live_api.options import ApiOptions
from aiperf_live_api.routes import PUBLIC, Ask, Routes


class Serving:
    """Serves a board while the run goes on, and a little longer.

    ask: asks the run to ``stop`` or ``cancel``.
    """

    def __init__(self, options: ApiOptions, board: Board, limits: Limits, ask: Ask) -> None:
        self._options, self._board, self._limits, self._ask = options, board, limits, ask
        self._over = asyncio.Event()
        self._listening: socket.socket | None = None
        self.app = application()
        self.token = options.api_token or new_token()
        self.asked_at_s: float | None = None
        """When anybody asked for something last, on the monotonic clock; None before that."""

    def listen(self) -> str:
        """Open the port; the URL.

        Raises:
            AiperfError: It is taken.
        """
        self._listening = listen(self._options.host, self._options.api_port or 0)
        return address_of(self._options.host, self._listening)

    async def run(self, feed: LiveFeed) -> None:
        """Serve until the run has ended, and its grace is over."""
        assert self._listening is not None
        self.app.middlewares.append(self._noticing())
        Routes(self._find, self._ask, self._shut_down).add(self.app)
        server = Server(self.app, Guard(self._options.host, self.token, PUBLIC), self._listening)
        await server.start()
        try:
            await feed.followed()
            if self.asked_at_s is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), self._limits.grace_s)
        finally:
            self._board.streams.end()
            await asyncio.sleep(0)
            await server.stop()

    async def _find(self, request: web.Request) -> Board:
        return self._board

    def _shut_down(self) -> None:
        asyncio.get_running_loop().call_later(self._limits.shutdown_s, self._over.set)

    def _noticing(self) -> Any:
        @web.middleware
        async def noticing(request: web.Request, handler: Handler) -> web.StreamResponse:
            self.asked_at_s = time.monotonic()
            return await handler(request)

        return noticing


__all__ = ["Serving"]
