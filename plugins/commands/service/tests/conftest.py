"""A service in this process: its routes on a port, over runs that are made up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiperf_command_service.book import RUNNING, Book, Entry
from aiperf_command_service.child import Child
from aiperf_command_service.intake import Intake, Limits
from aiperf_command_service.keeper import Keeper
from aiperf_command_service.messages import Found
from aiperf_command_service.routes import PROBLEM, ServiceRoutes, TokenGuard
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Doors, Server

TOKEN = "a-token-of-24-characters"


class MadeUp:
    """A child that ends when it is told to, with the code that a test sets.  variables: what its program would get."""

    def __init__(self, variables: dict[str, str], results: Path) -> None:
        self.variables, self.results, self.pid, self.token, self.last_words = variables, results, 0, "", ""
        self.url: str | None = None
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.signals, self.killed = 0, False

    def interrupt(self) -> None:
        self.signals += 1
        if not self.over.done():
            self.over.set_result(128 + signal.SIGINT)

    def kill(self) -> None:
        self.killed = True
        if not self.over.done():
            self.over.set_result(-signal.SIGKILL)

    async def ended(self) -> int:
        return await self.over


class Given(NamedTuple):
    """An answer: what was asked, and what came."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.content)


class Served(NamedTuple):
    """keeper: of the service.  begun: the runs that were begun.  at: its address.  doors: its connections."""

    keeper: Keeper
    begun: list[MadeUp]
    client: aiohttp.ClientSession
    at: str
    doors: Doors
    routes: set[str]
    given: list[Given]
    token: str

    async def answer(self, method: str, path: str, data: bytes | None = None, *, token: str = TOKEN, **headers: str) -> Given:
        """Ask; each answer is kept.  *token*: "" sends none.  *headers*: by names with _ for -."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        named |= {"Authorization": f"Bearer {token}"} if token else {}
        async with self.client.request(method, self.at + path, data=data, headers=named, allow_redirects=False) as answer:
            made = Given(method, path, answer.status, answer.headers, await answer.read())
            self.given.append(made)
            return made

    async def ask(self, method: str, path: str, data: bytes | None = None, **headers: str) -> tuple[int, Any]:
        made = await self.answer(method, path, data, **headers)
        plain = "json" not in made.headers.get("Content-Type", "") or made.status == 206
        return made.status, made.content if plain else made.said

    @staticmethod
    async def until(condition: Callable[[], object]) -> None:
        """Wait until it is so."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def made_up_service(
    patch: pytest.MonkeyPatch, folder: Path, found: Found | None = None, doors: Doors | None = None, **limits: Any
) -> AsyncIterator[Served]:
    begun: list[MadeUp] = []

    async def begin(launcher: Any, file: Path, results: Path, log: Path, variables: dict[str, str], where: Path) -> MadeUp:
        begun.append(MadeUp(variables, results))
        return begun[-1]

    async def checked(self: Intake, content: bytes, results: Path, *, trusted: bool) -> Found:
        return found or Found(label="m, chat")

    async def running(self: Keeper, entry: Entry, child: Any) -> None:
        entry.state = RUNNING
        await self.tell()

    patch.setattr(Child, "begin", begin)
    patch.setattr(Intake, "_checked", checked)
    patch.setattr(Keeper, "_note_running", running)
    book = Book(folder)
    bounds = Limits(**{"queue": 2, "keep": 2, "quota": None, "data": None, "variables": {}, "urls": (), **limits})
    listening = listen("127.0.0.1", 0)
    doors = doors or Doors(media=PROBLEM)
    with ThreadPoolExecutor(1) as launcher:
        keeper = Keeper(book, bounds, launcher)
        async with aiohttp.ClientSession() as client:
            app = ServiceRoutes(keeper, client).application()
            server = Server(app, TokenGuard("127.0.0.1", TOKEN), listening, doors)
            await server.start()
            work = asyncio.create_task(keeper.work())
            routes = {route.resource.canonical for route in app.router.routes() if route.resource is not None}
            yield Served(keeper, begun, client, address_of("127.0.0.1", listening), doors, routes, [], TOKEN)
            work.cancel()
            await server.stop()
    os.close(book._lock)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractAsyncContextManager[Served]]:
    """``service(folder, found, doors, **limits)``: a service in *folder*, whose checks of files find *found*."""
    return lambda *given, **more: made_up_service(monkeypatch, *given, **more)


@pytest.fixture(scope="session")
def made_up() -> Any:
    """service: as the fixture of this name, with the patch before its words; Given: an answer."""
    return SimpleNamespace(service=made_up_service, Given=Given)
