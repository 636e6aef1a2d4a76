"""The site of finished runs: the list at ``/``, each run below ``/runs/ID``; the routes of an only run also at the top."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from aiperf.sdk.errors import AiperfError
from aiperf_live_api.board import JSON, Board, encode
from aiperf_live_api.routes import PAGES, PUBLIC, Routes
from aiperf_pages.assets import STATIC, Assets, body
from aiperf_pages.guard import Guard, Refusal
from aiperf_pages.server import Server, application, serve_until_signal

from aiperf_command_serve.runs import ServedRuns

_PAGES = Path(__file__).parent / "static"


class Site:
    """The routes over *runs*."""

    def __init__(self, runs: ServedRuns) -> None:
        self._runs = runs
        self._assets = Assets(_PAGES, PAGES, STATIC)

    def application(self, over: asyncio.Event) -> web.Application:
        """The application; *over* is set by ``POST /api/shutdown``."""
        app = application()
        shut_down = over.set
        Routes(self._board, prefix="/runs/{run}", assets=self._assets).add(app)
        Routes(self._only, shut_down=shut_down, assets=self._assets).add(app, page=False)
        app.router.add_get("/", self._page)
        app.router.add_get("/api/runs", self._list)
        app.router.add_get("/runs/{run}", self._slash)
        return app

    async def _board(self, request: web.Request) -> Board:
        name = request.match_info["run"]
        board = await self._made(name)
        if board is None:
            raise Refusal(404, f"no run is called {name[:100]}; /api/runs lists them")
        return board

    async def _only(self, request: web.Request) -> Board:
        name = self._runs.only()
        board = None if name is None else await self._made(name)
        if board is None:
            raise Refusal(404, "several runs are served; /api/runs lists them, and /runs/ID has the routes of each")
        return board

    async def _made(self, name: str) -> Board | None:
        try:
            return await asyncio.to_thread(self._runs.board, name)
        except AiperfError as error:
            raise Refusal(500, f"the run can't be read: {error.message}") from error

    async def _list(self, request: web.Request) -> web.StreamResponse:
        def listed() -> bytes:
            self._runs.look()
            return encode({"runs": self._runs.listed()})

        try:
            return body(await asyncio.to_thread(listed), JSON).answer(request)
        except AiperfError as error:
            raise Refusal(500, f"the runs can't be listed: {error.message}") from error

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return self._assets.body("list.html").answer(request)

    async def _slash(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{request.rel_url.raw_path}/")


async def serve(
    runs: ServedRuns, listening: socket.socket, host: str, token: str, ready: Callable[[], None]
) -> None:  # fmt: skip
    """Serve until a signal, or ``POST /api/shutdown``."""
    over = asyncio.Event()
    server = Server(Site(runs).application(over), Guard(host, token, PUBLIC | {"/runs/{run}"}), listening)
    await serve_until_signal(server, over, ready)


__all__ = ["Site", "serve"]
