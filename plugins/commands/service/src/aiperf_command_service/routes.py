"""The routes of the service."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import hdrs, web
from aiperf.results import FinishedRun, open_runs
from aiperf.sdk.errors import AiperfError
from aiperf_command_serve.finished import board_of
from aiperf_live_api.board import Board
from aiperf_live_api.routes import PAGES, Routes
from aiperf_pages.assets import STATIC, Assets
from aiperf_pages.guard import Guard, Refusal

from aiperf_command_service.book import ENDED, QUEUED, RUNNING, UNDER_WAY, Entry
from aiperf_command_service.document import DOCUMENT
from aiperf_command_service.files import FileRoutes
from aiperf_command_service.intake import Faulty
from aiperf_command_service.keeper import CANCEL_S, Keeper, shown
from aiperf_command_service.messages import Found
from aiperf_command_service.relay import ALIVE_S, Relay

MOST_FILE_BYTES = 1 << 20
PROBES = frozenset(("/healthz", "/readyz"))
PUBLIC = PROBES | {"/runs/{run}/", "/static/{name}"}
"""Routes without the token: the probes, and a page that has no word of a run before its script asks with the token."""
_LIVE = re.compile(r"/runs/(?P<run>[^/]+)/(?P<rest>api/.*|metrics|ws)")
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
PROBLEM = "application/problem+json"
BODY_S = 30.0
"""Longest time for the whole body of a posted file."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TokenGuard(Guard):
    """A guard that wants the token on this machine, too."""

    def __init__(self, bound: str, token: str) -> None:
        super().__init__(bound, token, PUBLIC)
        self.local = False  # the names that it is reached by are still this machine's

    def check(self, request: web.Request) -> None:
        try:
            super().check(request)
        except Refusal as refusal:
            if refusal.status == 401:
                refusal.sentence = "every request but the probes needs the token: Authorization: Bearer TOKEN"
            raise


async def as_problem(request: web.Request, response: web.StreamResponse) -> None:
    """A signal of the application, ``on_response_prepare``: errors are problems (RFC 9457)."""
    if response.status >= 400 and response.content_type == "application/json":
        response.content_type = PROBLEM


class ServiceRoutes:
    """The routes over *keeper*.  client: asks the APIs of runs under way."""

    def __init__(self, keeper: Keeper, client: aiohttp.ClientSession) -> None:
        self._keeper, self._intake, self._book = keeper, keeper.intake, keeper.book
        self._relay, self._assets = Relay(client), Assets(PAGES, STATIC)
        self._board: tuple[str, Board] | None = None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MOST_FILE_BYTES, middlewares=[self._problems(), self._live()])
        app.on_response_prepare.append(as_problem)
        add = app.router
        add.add_post("/runs", self._post)
        add.add_get("/runs", self._list)
        add.add_get("/runs/{run}", self._one)
        add.add_delete("/runs/{run}", self._delete)
        add.add_post("/runs/{run}/keep", self._keep)
        add.add_get("/runs/{run}/events", self._events)
        FileRoutes(self._book, self._of).add(app)
        add.add_get("/metrics", self._metrics)
        add.add_get("/openapi.json", self._document)
        Routes(self._finished, prefix="/runs/{run}").add(app, page=False)
        add.add_get("/runs/{run}/", self._page)
        add.add_get("/static/{name:.+}", self._assets.answer)
        self.add_probes(app)
        return app

    def add_probes(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self._well)
        app.router.add_get("/readyz", self._ready)

    def _problems(self) -> Any:
        @web.middleware
        async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except Faulty as faulty:
                body = {"detail": faulty.sentence, "faults": [msgspec.to_builtins(fault) for fault in faulty.found.faults]}
                return web.json_response(body, status=422)
            except web.HTTPNotFound as error:
                raise Refusal(404, f"there is nothing at {request.path[:200]}; /openapi.json lists the routes") from error
            except web.HTTPRequestEntityTooLarge as error:
                raise Refusal(413, f"a run's file has at most {MOST_FILE_BYTES >> 20} MiB") from error

        return told

    def _live(self) -> Any:
        """Below ``/runs/ID/``, what the API of a run under way answers."""

        @web.middleware
        async def passed(request: web.Request, handler: Handler) -> web.StreamResponse:
            match = _LIVE.fullmatch(request.path)
            child = self._keeper.child
            if match is None or child is None or request.match_info.http_exception is not None:
                return await handler(request)
            entry = self._entry(match["run"])
            if entry.state not in UNDER_WAY:
                return await handler(request)
            if child.url is None:
                raise Refusal(503, "the run is not served yet; ask again soon", {"Retry-After": "1"})
            answer = await self._relay.passed(request, f"{child.url}/{match['rest']}", child.token)
            if request.method == hdrs.METH_POST and answer.status == 202:
                entry.asked = max(entry.asked, 2 if match["rest"] == "api/cancel" else 1)
            return answer

        return passed

    def _entry(self, name: str) -> Entry:
        entry = self._book.entries.get(name)
        if entry is None:
            raise Refusal(404, f"no run is called {name[:100]}; GET /runs lists them")
        return entry

    def _of(self, request: web.Request) -> Entry:
        return self._entry(request.match_info["run"])

    def _shown(self, entry: Entry) -> dict[str, Any]:
        waiting = self._book.waiting()
        return shown(entry, waiting.index(entry) + 1 if entry in waiting else None)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Idempotency-Key", "")
        if key and not _KEY.fullmatch(key):
            raise Refusal(400, "an Idempotency-Key has 1 to 200 printable ASCII characters without spaces")
        dry = request.query.get("dry_run", "") not in ("", "0", "false")
        if not dry:
            self._intake.refuse_if_full()
        content = await _body(request)
        if not content.strip():
            raise Refusal(400, "the request has no body; it is a file of aiperf profile --config, YAML or JSON")
        form = "json" if request.content_type.endswith("json") else "yaml"
        made, new = await self._intake.take(content, form, key, dry=dry)
        if isinstance(made, Found):
            plan = {"label": made.label, "runs": made.runs, "models": made.models, "urls": made.urls, "endpoint": made.endpoint,
                    "cells": made.cells}  # fmt: skip
            return web.json_response({"valid": True, "plan": plan})
        headers = {hdrs.LOCATION: f"/runs/{made.id}"}
        return web.json_response(self._shown(made), status=201 if new else 200, headers=headers)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        entries = sorted(self._book.entries.values(), key=lambda entry: -entry.number)
        return web.json_response({"runs": [self._shown(entry) for entry in entries]})

    async def _one(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._shown(self._of(request)))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        entry = self._of(request)
        if entry.asked >= 2 and entry.state in UNDER_WAY:
            raise Refusal(409, f"the run was asked to end twice: it is being cancelled, and is killed after {CANCEL_S:g} s")
        sentence, gone = await self._keeper.end(entry)
        return web.json_response({"id": entry.id, "detail": sentence}, status=200 if gone else 202)

    async def _keep(self, request: web.Request) -> web.StreamResponse:
        entry = self._of(request)
        was, entry.kept = entry.kept, True
        try:
            self._book.save(entry)
        except OSError as error:
            entry.kept = was
            raise Refusal(503, f"that can't be written: {error.strerror or error}", {"Retry-After": "10"}) from error
        return web.json_response(self._shown(entry))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """The states of a run, and while it runs the events of its API; ends when it has ended."""
        entry = self._of(request)
        child = self._keeper.child
        if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
            if entry.state != RUNNING or child is None or child.url is None:
                raise Refusal(
                    409, f"the run is {entry.state}: events by WebSocket are those of a run under way", {"Retry-After": "1"}
                )
            return await self._relay.socket(request, f"{child.url}/ws", child.token)
        with self._relay.place("/events"):
            response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream"})
            await response.prepare(request)
            told = ""
            while entry.id in self._book.entries:
                if (state := self._word(entry)) != told:
                    await response.write(f"event: state\ndata: {state}\n\n".encode())
                    told = state
                if entry.state in ENDED:
                    break
                child = self._keeper.child
                if entry.state == RUNNING and child is not None and child.url is not None:
                    await self._relay.events(request, response, f"{child.url}/api/events", child.token)
                await self._change(response)
            await response.write_eof()
            return response

    def _word(self, entry: Entry) -> str:
        about = self._shown(entry)
        return json.dumps({name: about.get(name) for name in ("id", "state", "position", "exit_code", "verdict", "reason")})

    async def _change(self, response: web.StreamResponse) -> None:
        changed = self._keeper.changed
        try:
            async with asyncio.timeout(ALIVE_S), changed:
                await changed.wait()
        except TimeoutError:
            await response.write(b": still here\n\n")

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """The page of a run in any state: its script asks until there is something to show."""
        self._of(request)
        return self._assets.body("page.html").answer(request)

    async def _finished(self, request: web.Request) -> Board:
        entry = self._of(request)
        if entry.state not in ENDED:
            raise Refusal(409, f"the run is {entry.state}")
        if self._board is None or self._board[0] != entry.id:
            try:
                self._board = entry.id, await asyncio.to_thread(_board, self._book.results(entry))
            except AiperfError as error:
                raise Refusal(404, f"the run has no results to show: {error.message}") from error
        return self._board[1]

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        states = dict.fromkeys((QUEUED, *sorted(UNDER_WAY | ENDED)), 0)
        for entry in self._book.entries.values():
            states[entry.state] += 1
        lines = ["# HELP aiperf_service_runs Runs of the service by state.", "# TYPE aiperf_service_runs gauge"]
        lines += [f'aiperf_service_runs{{state="{state}"}} {count}' for state, count in states.items()]
        figures = {
            "ready": ("Whether a run would be taken.", int(self._intake.unready() is None)),
            "used_bytes": ("Bytes of all files of all runs.", self._intake.used_bytes()),
            "free_bytes": ("Bytes that the disk has left.", self._intake.free_bytes()),
        }
        for name, (what, value) in figures.items():
            lines += [
                f"# HELP aiperf_service_{name} {what}",
                f"# TYPE aiperf_service_{name} gauge",
                f"aiperf_service_{name} {value}",
            ]
        text, child = "\n".join(lines) + "\n", self._keeper.child
        if child is not None and child.url is not None:
            text += await self._relay.text(f"{child.url}/metrics", child.token)
        return web.Response(text=text, headers={hdrs.CONTENT_TYPE: "text/plain; version=0.0.4; charset=utf-8"})

    async def _document(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(DOCUMENT)

    async def _well(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.StreamResponse:
        why = self._intake.unready()
        return web.json_response({"status": "ready"} if why is None else {"detail": why}, status=200 if why is None else 503)


async def _body(request: web.Request) -> bytes:
    """The whole body.

    Raises:
        Refusal: 400: it broke off, or is none; 408: it came too slowly.
    """
    try:
        async with asyncio.timeout(BODY_S):
            return await request.read()
    except TimeoutError:
        raise Refusal(408, f"the body did not come whole within {BODY_S:g} s", {hdrs.CONNECTION: "close"}) from None
    except (web.RequestPayloadError, aiohttp.ClientError) as error:
        why = str(error)[:200] or "it broke off"
        raise Refusal(400, f"the body can't be read: {why}", {hdrs.CONNECTION: "close"}) from error


def _board(results: Path) -> Board:
    runs = open_runs([results])
    return board_of(FinishedRun(runs[0].directory, runs[0].label))


__all__ = ["PROBES", "PROBLEM", "ServiceRoutes", "TokenGuard", "as_problem"]
