"""The routes of a board, and of its page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import WSMsgType, hdrs, web
from aiperf_pages.assets import STATIC, Assets
from aiperf_pages.files import file_answer
from aiperf_pages.guard import Refusal, refused

from aiperf_live_api import documents, exposition, openapi
from aiperf_live_api.board import RUNNING, WAITING, Board, encode
from aiperf_live_api.streams import Client, events

PAGES = Path(__file__).parent / "static"
_ALIVE_S = 15.0
_STUCK_S = 60.0
"""Longest time in which a client that gets events may read nothing."""
_FULL = 1013
"""The code of a WebSocket that closes for want of room."""
_MOST_MESSAGE_BYTES = 1 << 16
PUBLIC = frozenset(("/", "/runs/{run}/", "/static/{name}", "/healthz", "/readyz", "/api/openapi.json", "/dashboard"))
"""Routes that say nothing of a run."""

Ask = Callable[[str], None]


class Routes:
    """The routes of the board that *find* gives for a request, below *prefix* (``/runs/{run}``, or "").

    ask: asks the run to ``stop`` or ``cancel``; None where there is none under way.  shut_down: ends the server; None where it
    may not be ended so.
    """

    def __init__(
        self, find: Callable[[web.Request], Awaitable[Board]], ask: Ask | None = None,
        shut_down: Callable[[], None] | None = None, prefix: str = "", assets: Assets | None = None,
    ) -> None:  # fmt: skip
        self._find, self._ask, self._shut_down, self._prefix = find, ask, shut_down, prefix
        self._assets = assets or Assets(PAGES, STATIC)

    def add(self, app: web.Application, *, page: bool = True) -> None:
        """Add them to *app*.  page: also the page, its files and what is of the server itself."""
        at = self._prefix
        json_routes: dict[str, Callable[[Board], Any]] = {
            "progress": documents.progress, "metrics": documents.metrics, "workers": documents.workers,
            "server-metrics": documents.server_metrics, "results": documents.results,
        }  # fmt: skip
        for name, make in json_routes.items():
            app.router.add_get(f"{at}/api/{name}", self._json(name, make))
        app.router.add_get(f"{at}/api/run", self._run)
        app.router.add_get(f"{at}/api/config", self._config)
        app.router.add_get(f"{at}/api/history", self._json("history", lambda board: board.history.document()))
        app.router.add_get(f"{at}/api/results/list", self._listing)
        app.router.add_get(f"{at}/api/results/files/{{name:.+}}", self._file)
        app.router.add_get(f"{at}/metrics", self._metrics)
        app.router.add_get(f"{at}/api/events", self._events)
        app.router.add_get(f"{at}/ws", self._socket)
        app.router.add_post(f"{at}/api/stop", self._end)
        app.router.add_post(f"{at}/api/cancel", self._end)
        if page:
            app.router.add_get(f"{at}/", self._page)
        if not at:
            self.add_own(app)

    def add_own(self, app: web.Application) -> None:
        """The routes of the server itself."""
        app.router.add_get("/static/{name:.+}", self._assets.answer)
        app.router.add_get("/dashboard", self._dashboard)
        app.router.add_get("/healthz", self._well)
        app.router.add_get("/readyz", self._well)
        app.router.add_get("/api/openapi.json", self._openapi)
        app.router.add_post("/api/shutdown", self._shutdown)

    def _json(self, name: str, make: Callable[[Board], Any]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            board = await self._find(request)
            return board.cached(name, lambda: make(board)).answer(request)

        return answer

    async def _run(self, request: web.Request) -> web.StreamResponse:
        board = await self._find(request)
        about = board.about
        if about is None:
            raise Refusal(503, "no run has begun yet; ask again soon")
        return board.cached("run", lambda: about.identity).answer(request)

    async def _config(self, request: web.Request) -> web.StreamResponse:
        board = await self._find(request)
        about = board.about
        if about is None:
            raise Refusal(503, "no run has begun yet; ask again soon")
        return board.cached("config", lambda: about.config).answer(request)

    async def _listing(self, request: web.Request) -> web.StreamResponse:
        board = await self._find(request)
        return web.json_response(await asyncio.to_thread(documents.listing, board))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        board, name = await self._find(request), request.match_info["name"]
        if ".." in name.replace("\\", "/").split("/") or name.startswith(("/", "\\")) or "\0" in name:
            raise Refusal(400, "a file's name has no .. and no / at its begin; /api/results/list has the names")
        files = await asyncio.to_thread(documents.files_of, board)
        if name not in files:
            why = "the run's files are there when it has ended" if board.finish is None else "/api/results/list has the names"
            raise Refusal(404, f"the run has no file {name[:200]}; {why}")
        return file_answer(request, files[name])

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        board = await self._find(request)
        return board.cached_text("metrics.txt", exposition.CONTENT_TYPE, lambda: exposition.text(board)).answer(request)

    async def _end(self, request: web.Request) -> web.StreamResponse:
        """``/api/stop`` and ``/api/cancel``: as the first and the second Ctrl-C."""
        board, kind = await self._find(request), request.path.rpartition("/")[2]
        if board.status == WAITING:
            raise Refusal(409, "no run has begun yet; there is nothing to end")
        if board.status != RUNNING or self._ask is None:
            raise Refusal(409, f"the run has ended ({board.status}); there is nothing to {kind}")
        if board.asked == kind or board.asked == "cancel":
            more = "; POST /api/cancel aborts what is in flight" if board.asked == "stop" else ""
            raise Refusal(409, f"the run was asked to {board.asked} before, and is ending{more}")
        board.asked = kind
        self._ask(kind)
        board.tell("run", board.run_event)
        sentence = {
            "stop": "nothing more is sent, requests in flight may end, and the results are written",
            "cancel": "requests in flight are aborted, and no results are written: aiperf report DIR makes them",
        }[kind]
        return web.json_response({"status": {"stop": "stopping", "cancel": "cancelling"}[kind], "detail": sentence}, status=202)

    async def _shutdown(self, request: web.Request) -> web.StreamResponse:
        if self._shut_down is None:
            raise Refusal(409, "this server ends with Ctrl-C, or with SIGTERM")
        if self._ask is not None and (await self._find(request)).status in (RUNNING, WAITING):
            raise Refusal(409, "the run goes on; POST /api/stop ends it")
        self._shut_down()
        return web.json_response({"status": "shutting_down"})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events, until the run's end."""
        board = await self._find(request)
        if board.streams.full:
            raise Refusal(503, f"{board.streams.most} clients get events, which is the most; close one, or ask /api/progress")
        client = board.streams.join()
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8"})
        try:
            await response.prepare(request)
            for kind, document in board.first_events():
                await _write(response, kind, encode(document))
            if board.finish is not None and not board.live:
                return response
            async for event in events(client, board.streams, _ALIVE_S):
                if event is None:
                    await asyncio.wait_for(response.write(b": alive\n\n"), _STUCK_S)
                else:
                    await _write(response, event.kind, event.data, event.number)
        except (ConnectionError, TimeoutError):  # the client is gone, or reads nothing
            if request.transport is not None:
                request.transport.abort()
        finally:
            board.streams.leave(client)
        return response

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """The WebSocket: a client subscribes to types of messages."""
        board = await self._find(request)
        if not web.WebSocketResponse().can_prepare(request).ok:
            return refused(426, "this is a WebSocket; /api/events has the same by HTTP", {hdrs.UPGRADE: "websocket"})
        socket = web.WebSocketResponse(max_msg_size=_MOST_MESSAGE_BYTES, heartbeat=30.0, timeout=1.0)
        if board.streams.full:
            await socket.prepare(request)
            await socket.close(code=_FULL, message=f"{board.streams.most} clients are the most".encode())
            return socket
        client = board.streams.join()
        try:
            await socket.prepare(request)
            await self._converse(request, board, client, socket)
        except ConnectionError:
            pass
        finally:
            board.streams.leave(client)
        return socket

    async def _converse(self, request: web.Request, board: Board, client: Client, socket: web.WebSocketResponse) -> None:
        """Answer a client's messages, and send it what it subscribes to, until it goes."""
        wanted = set[str]()
        sending = asyncio.create_task(_send_messages(request, board, client, socket, wanted))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await _answered(socket, message.data, wanted)
                elif message.type is WSMsgType.BINARY:
                    await _say(socket, {"type": "error", "message": "messages are text, with JSON"})
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await sending

    async def _page(self, request: web.Request) -> web.StreamResponse:
        await self._find(request)  # an unknown run has no page
        return self._assets.body("page.html").answer(request)

    async def _dashboard(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/")

    async def _well(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return openapi.document_body().answer(request)


async def _write(response: web.StreamResponse, kind: str, data: bytes, number: int | None = None) -> None:
    """One event.

    Raises:
        TimeoutError: The client has read nothing for too long.
    """
    head = b"" if number is None else b"id: %d\n" % number
    await asyncio.wait_for(response.write(b"%sevent: %s\ndata: %s\n\n" % (head, kind.encode(), data)), _STUCK_S)


async def _say(socket: web.WebSocketResponse, document: Any) -> None:
    await asyncio.wait_for(socket.send_str(encode(document).decode()), _STUCK_S)


async def _answered(socket: web.WebSocketResponse, text: str, wanted: set[str]) -> None:
    """Take a message of a client, and answer it."""
    try:
        message = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return await _say(socket, {"type": "error", "message": f"the message is no JSON: {error}"})
    if not isinstance(message, dict):
        return await _say(socket, {"type": "error", "message": "a message is a JSON object"})
    kind, types = message.get("type"), message.get("message_types", [])
    if kind == "ping":
        return await _say(socket, {"type": "pong"})
    if kind not in ("subscribe", "unsubscribe"):
        return await _say(socket, {"type": "error", "message": "the type is subscribe, unsubscribe or ping"})
    if not isinstance(types, list) or not all(isinstance(each, str) and len(each) < 100 for each in types) or len(types) > 100:
        return await _say(socket, {"type": "error", "message": "message_types is a list of texts"})
    wanted.update(types) if kind == "subscribe" else wanted.difference_update(types)
    return await _say(socket, {"type": f"{kind}d", "message_types": types})


async def _send_messages(
    request: web.Request, board: Board, client: Client, socket: web.WebSocketResponse, wanted: set[str]
) -> None:  # fmt: skip
    """Send what the client wants, until nothing follows; then close."""
    try:
        async for event in events(client, board.streams, _ALIVE_S):
            if event is None:
                continue
            if event.kind == "lost" or "*" in wanted or event.kind in wanted:
                head = b'{"message_type":"%s","data":' % event.kind.encode()
                await asyncio.wait_for(socket.send_str((head + event.data + b"}").decode()), _STUCK_S)
            if event.kind in ("snapshot", "end"):
                for kind, document in _as_reference(board, event.kind):
                    if "*" in wanted or kind in wanted:
                        await _say(socket, {"message_type": kind, **document})
        await socket.close()
    except (ConnectionError, TimeoutError):  # it is gone, or reads nothing
        if request.transport is not None:
            request.transport.abort()


def _as_reference(board: Board, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The messages of the reference that say what an event of ours does."""
    if kind == "end":
        return [("benchmark_complete", {"was_cancelled": board.status == "cancelled"})]
    metrics = documents.metrics(board)["metrics"]
    states = {name: worker["status"] for name, worker in documents.workers(board)["workers"].items()}
    return [
        ("realtime_metrics", {"metrics": [{"tag": tag, **each} for tag, each in metrics.items()]}),
        ("worker_status_summary", {"worker_statuses": states}),
        ("realtime_server_metrics", documents.server_metrics(board)),
    ]


__all__ = ["PAGES", "PUBLIC", "Routes"]
