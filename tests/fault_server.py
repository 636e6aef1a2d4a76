"""A chat server whose faults are chosen by the prompt (``fault=NAME``), with a log of what it received and sent.

The log is the truth that the fault table and the kill table judge runs by.  The server runs in a thread of its own:

    with FaultServer() as server:
        ...  # talk to server.url
    assert server.rows[0].outcome == ANSWERED
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiperf_testing.server import answer, chunk, chunked_head

ANSWERED, IN_FLIGHT, CLIENT_GONE, SERVER_GONE = "answered", "in flight", "client gone", "server gone"
TOKENS = 6
"""Pieces of content in a whole answer."""
STEP_S = 0.005
ENDLESS_BYTES = 64 << 20
"""Headers of an endless answer, at most: a client must have left before."""
HUGE_BYTES = 3 << 20
LATE_S = 0.02
IDLE_S = 0.004

_BACKLOG = 512
_PROMPT = re.compile("fault=([a-z0-9_]+)")
_RESET = struct.pack("ii", 1, 0)
_GARBAGE = b"\x00\xff\xfeSSH-2.0-nothing like HTTP\r\n\r\n" * 3
_BAD_EVENTS = b'data: {"choices": [{"delta": {"content": \xff\xfe}}]}\n\ndata: NaN\n\ndata: {{{\n\n'


@dataclass
class Row:
    """A request as the server saw it.  Times are CLOCK_MONOTONIC ns.

    nth: its place on its connection, from 0.  content: when each piece of content had been handed to the socket.
    outcome: ANSWERED for a whole answer with status 200, the name of the fault, CLIENT_GONE, SERVER_GONE or IN_FLIGHT.
    sent_bytes: of the answer.  ended_ns: None while in flight.
    """

    request_id: str
    fault: str | None
    connection: int
    nth: int
    received_ns: int
    content: list[int] = field(default_factory=list)
    outcome: str = IN_FLIGHT
    sent_bytes: int = 0
    ended_ns: int | None = None


class _Line:
    """One connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number, self.reader, self.writer = number, reader, writer

    @property
    def gone(self) -> bool:
        """Whether the client has closed."""
        return self.reader.at_eof() or self.writer.is_closing() or self.reader.exception() is not None

    def closed_idle(self) -> bool:
        """Close the connection if nothing of another request is there; at once, for a request that comes between is lost."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        if self.reader._buffer or select.select([sock], [], [], 0)[0]:  # type: ignore[attr-defined]  # no public way to look
            return False
        sock.shutdown(socket.SHUT_RDWR)
        return True

    def send(self, row: Row, data: bytes) -> None:
        self.writer.write(data)
        row.sent_bytes += len(data)

    async def request(self) -> tuple[str, dict[str, str], bytes]:
        """Request line, headers in lower case, body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return first, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def until_closed(self) -> None:
        while not self.gone:
            await asyncio.sleep(STEP_S)

    async def close(self, *, reset: bool = False) -> None:
        if reset:
            sock: socket.socket = self.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.writer.transport.abort()
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class FaultServer:
    """The server.

    rows: its log, in the order of receipt.  accepted: connections.  refused_at_once: connections reset before a byte was read.
    reset_accepts: reset every third connection so.  ready: while False, every request gets a 503 that is not in the log.
    away: it refuses connections until it comes.
    """

    def __init__(
        self, *, reset_accepts: bool = False, step_s: float = STEP_S, tokens: int = TOKENS, away: bool = False
    ) -> None:
        self.rows: list[Row] = []
        self.accepted = self.refused_at_once = self.looks = 0
        self.ready = True
        self.tokens, self._step_s, self._reset_accepts = tokens, step_s, reset_accepts
        self._hold_from: int | None = None
        self._hold_after = 0
        self._listening, self._away = _bound(0), away
        if not away:
            self._listening.listen(_BACKLOG)
        self._closed_port = socket.socket()  # bound and never listening: connections to it are refused
        self._closed_port.bind(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def dead_url(self) -> str:
        """A URL that refuses connections."""
        return f"http://127.0.0.1:{self._closed_port.getsockname()[1]}"

    def hold(self, first: int, after: int) -> None:
        """Stop the answers to request number *first* (from 0) and later ones behind *after* pieces, until :meth:`release`."""
        self._hold_from, self._hold_after = first, after

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    def leave(self) -> None:
        """Close every connection, and refuse others until :meth:`come`."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()

    def come(self) -> None:
        """Listen again, at the same address."""
        self._listening.listen(_BACKLOG)
        self._loop.call_soon_threadsafe(lambda: self._spawn(self._accept()))

    def answered(self) -> list[Row]:
        return [row for row in list(self.rows) if row.outcome == ANSWERED]

    def in_flight(self) -> list[Row]:
        return [row for row in list(self.rows) if row.outcome == IN_FLIGHT]

    def __enter__(self) -> FaultServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._listening.close()
        self._closed_port.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        if not self._away:
            self._spawn(self._accept())
        self._loop.run_forever()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))  # transports close in the turn after

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _leave(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _, port = self._listening.getsockname()
        self._listening.close()
        self._listening = _bound(port)
        for row in self.in_flight():
            row.outcome = SERVER_GONE

    async def _accept(self) -> None:
        while True:
            sock, _ = await self._loop.sock_accept(self._listening)
            number = self.accepted
            self.accepted += 1
            if self._reset_accepts and number % 3 == 1:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                sock.close()
                self.refused_at_once += 1
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._spawn(self._serve(sock, number))

    async def _serve(self, sock: socket.socket, number: int) -> None:
        reader = asyncio.StreamReader(limit=1 << 22)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, sock)
        line = _Line(number, reader, asyncio.StreamWriter(transport, protocol, reader, self._loop))
        try:
            nth = 0
            while await self._exchange(line, nth):
                nth += 1
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            await line.close()

    async def _exchange(self, line: _Line, nth: int) -> bool:
        """Answer one request; whether the connection stays open."""
        first, headers, body = await line.request()
        if not self.ready or not first.startswith("POST"):
            self.looks += 1
            line.writer.write(answer(b'{"object":"list","data":[{"id":"m"}]}') if self.ready else answer(b"{}", status=503))
            return True
        asked = _PROMPT.search(str(json.loads(body)["messages"][-1]["content"]))
        fault = asked[1] if asked else None
        row = Row(headers.get("x-request-id", ""), fault, line.number, nth, time.monotonic_ns())
        number = len(self.rows)
        self.rows.append(row)
        try:
            if fault is None:
                return await self.whole(line, row, number)
            return await _FAULTS[fault](self, line, row)
        except OSError:
            row.outcome = CLIENT_GONE
            raise
        finally:
            if row.outcome == IN_FLIGHT and fault is not None:
                row.outcome = fault
            row.ended_ns = row.ended_ns or time.monotonic_ns()

    async def whole(self, line: _Line, row: Row, number: int = -1) -> bool:
        """Send a whole answer; *number*: of the request, for :meth:`hold`.  Returns whether the connection stays open."""
        held = self._hold_from is not None and number >= self._hold_from
        if not (held and self._hold_after == 0):
            line.send(row, chunked_head())
        for piece in range(self.tokens):
            if held and piece == self._hold_after:
                await self._released.wait()
                if piece == 0:
                    line.send(row, chunked_head())
            await asyncio.sleep(self._step_s)
            if line.gone:
                row.outcome = CLIENT_GONE
                return False
            line.send(row, chunk(_content(piece)))
            row.content.append(time.monotonic_ns())
        line.send(row, chunk(_closing(self.tokens)) + chunk(b"data: [DONE]\n\n") + chunk())
        row.ended_ns = time.monotonic_ns()
        row.outcome = CLIENT_GONE if line.gone else ANSWERED
        return True


def _bound(port: int) -> socket.socket:
    """A socket that has the port and doesn't listen yet: connections to it are refused."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _content(n: int) -> bytes:
    return _event({"id": "x", "choices": [{"index": 0, "delta": {"content": f"w{n} "}, "finish_reason": None}]})


def _closing(tokens: int) -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": 3 + tokens}
    finish = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return _event(finish) + _event({"id": "x", "choices": [], "usage": usage})


# Faults: each coroutine answers one request; True keeps the connection open.

Fault = Callable[[FaultServer, _Line, Row], Awaitable[bool]]


async def _some(line: _Line, row: Row, count: int = 2, head: bytes = b"", *, chunked: bool = True) -> None:
    """A head and the first *count* pieces of content."""
    line.send(row, head or chunked_head())
    for piece in range(count):
        await asyncio.sleep(STEP_S)
        line.send(row, chunk(_content(piece)) if chunked else _content(piece))
        row.content.append(time.monotonic_ns())
    await asyncio.sleep(STEP_S)


async def _reset_request(server: FaultServer, line: _Line, row: Row) -> bool:
    await line.close(reset=True)
    return False


async def _reset_late(server: FaultServer, line: _Line, row: Row) -> bool:
    """Within the time in which acknowledgements are delayed: nothing of the request may have been acknowledged."""
    await asyncio.sleep(LATE_S)
    await line.close(reset=True)
    return False


async def _fin_request(server: FaultServer, line: _Line, row: Row) -> bool:
    return False


async def _idle_fin(server: FaultServer, line: _Line, row: Row) -> bool:
    """A whole answer, and the connection is closed once it is idle for a while: nothing is lost."""
    await server.whole(line, row)
    await asyncio.sleep(IDLE_S)
    return not line.closed_idle()


async def _close_race(server: FaultServer, line: _Line, row: Row) -> bool:
    """A whole answer, and a close at once that the head didn't announce: it crosses the next request."""
    await server.whole(line, row)
    return False


async def _reset_header(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, chunked_head()[:30])
    await asyncio.sleep(STEP_S)
    await line.close(reset=True)
    return False


async def _reset_content(server: FaultServer, line: _Line, row: Row) -> bool:
    await _some(line, row, 0)
    await line.close(reset=True)
    return False


async def _reset_stream(server: FaultServer, line: _Line, row: Row) -> bool:
    await _some(line, row)
    await line.close(reset=True)
    return False


async def _stall(server: FaultServer, line: _Line, row: Row) -> bool:
    await _some(line, row)
    await line.until_closed()
    return False


async def _truncate(server: FaultServer, line: _Line, row: Row) -> bool:
    await _some(line, row)
    return False


async def _cut(server: FaultServer, line: _Line, row: Row) -> bool:
    """A stream without framing ends early; nothing in HTTP tells."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    await _some(line, row, head=head, chunked=False)
    return False


async def _not_http(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, _GARBAGE)
    await asyncio.sleep(STEP_S)
    return False


async def _bad_events(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, chunked_head() + chunk(_BAD_EVENTS) + chunk(b"data: [DONE]\n\n") + chunk())
    return True


async def _status_429(server: FaultServer, line: _Line, row: Row) -> bool:
    body = b'{"error":{"message":"slow down","type":"rate_limit"}}'
    line.send(row, answer(body, status=429, reason="Too Many Requests", headers=["Retry-After: 1"]))
    return True


async def _status_503(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, answer(b"<html>no backend</html>", status=503, reason="Unavailable", content_type="text/html"))
    return True


async def _status_events(server: FaultServer, line: _Line, row: Row) -> bool:
    events = _event({"error": {"message": "CUDA error", "type": "internal"}}) + b"data: [DONE]\n\n"
    line.send(row, answer(events, status=500, reason="Wrong", content_type="text/event-stream"))
    return True


async def _filtered(server: FaultServer, line: _Line, row: Row) -> bool:
    """An answer without content that says why, and what it cost."""
    finish = _event({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]})
    usage = _event({"id": "x", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}})
    line.send(row, chunked_head() + chunk(finish + usage + b"data: [DONE]\n\n") + chunk())
    return True


async def _told(line: _Line, row: Row, *events: dict[str, Any]) -> bool:
    """A whole answer of these events."""
    line.send(row, chunked_head())
    for event in events:
        await asyncio.sleep(STEP_S)
        line.send(row, chunk(_event(event)))
        row.content.append(time.monotonic_ns())
    line.send(row, chunk(b"data: [DONE]\n\n") + chunk())
    row.outcome = CLIENT_GONE if line.gone else ANSWERED
    return True


async def _choices(server: FaultServer, line: _Line, row: Row) -> bool:
    """Two answers, each with a usage of its own, as llama.cpp sends them."""
    texts = [{"id": "x", "choices": [{"index": n % 2, "delta": {"content": f"w{n} "}}]} for n in range(4)]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    ends = [{"id": "x", "choices": [{"index": n, "delta": {}, "finish_reason": "stop"}], "usage": usage} for n in range(2)]
    return await _told(line, row, *texts, *ends)


async def _negative_usage(server: FaultServer, line: _Line, row: Row) -> bool:
    text = {"id": "x", "choices": [{"index": 0, "delta": {"content": "w"}, "finish_reason": "stop"}]}
    usage = {"prompt_tokens": -5, "completion_tokens": -1, "total_tokens": -6}
    return await _told(line, row, text, {"id": "x", "choices": [], "usage": usage})


async def _refusal(server: FaultServer, line: _Line, row: Row) -> bool:
    pieces = [{"id": "x", "choices": [{"index": 0, "delta": {"refusal": word}}]} for word in ("I ", "can't ", "say.")]
    return await _told(line, row, *pieces, {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


async def _interim_storm(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)
    await line.until_closed()
    return False


async def _redirect(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, answer(b"", status=307, reason="Elsewhere", headers=[f"Location: {server.url}/elsewhere"]))
    return True


async def _gzip(server: FaultServer, line: _Line, row: Row) -> bool:
    """A whole stream, packed although nobody asked for it."""
    events = b"".join(map(_content, range(TOKENS))) + _closing(TOKENS) + b"data: [DONE]\n\n"
    headers = ["Content-Encoding: gzip"]
    line.send(row, answer(gzip.compress(events, mtime=0), headers=headers, content_type="text/event-stream"))
    return True


async def _huge_error(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, answer(b"x" * HUGE_BYTES, status=500, reason="Internal Server Error", content_type="text/plain"))
    await line.writer.drain()
    return True


async def _endless_headers(server: FaultServer, line: _Line, row: Row) -> bool:
    line.send(row, b"HTTP/1.1 200 OK\r\n")
    block = b"".join(b"X-Filler-%d: %s\r\n" % (n, b"f" * 80) for n in range(100))
    while row.sent_bytes < ENDLESS_BYTES and not line.gone:
        line.send(row, block)
        await line.writer.drain()
        await asyncio.sleep(0)
    return False


_FAULTS: dict[str, Fault] = {
    "reset_request": _reset_request,
    "reset_late": _reset_late,
    "fin_request": _fin_request,
    "idle_fin": _idle_fin,
    "close_race": _close_race,
    "reset_header": _reset_header,
    "reset_content": _reset_content,
    "reset_stream": _reset_stream,
    "stall": _stall,
    "truncate": _truncate,
    "cut": _cut,
    "not_http": _not_http,
    "bad_events": _bad_events,
    "status_429": _status_429,
    "status_503": _status_503,
    "status_events": _status_events,
    "filtered": _filtered,
    "choices": _choices,
    "negative_usage": _negative_usage,
    "refusal": _refusal,
    "interim_storm": _interim_storm,
    "redirect": _redirect,
    "gzip": _gzip,
    "huge_error": _huge_error,
    "endless_headers": _endless_headers,
}
FAULT_NAMES = tuple(_FAULTS)
"""Faults that a prompt can ask for."""
