"""Dialects and pages as modules of a folder: routes, framings, answers without tokens."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiperf_command_simulate.dialect import Ask, Dialect, Lines, Opened, Page, Piece, Reply, Usage, Writer, to_json
from aiperf_command_simulate.dialects import Routes, found, method_of, pick
from aiperf_command_simulate.http1 import Connection, Request
from aiperf_command_simulate.options import SimulateOptions
from aiperf_command_simulate.scenario import scenario
from aiperf_command_simulate.server import Server


class VectorWriter(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        assert usage is not None
        return to_json({"vectors": [piece.index for piece in pieces], "prompt": usage.prompt, "made": usage.completion})


class Vectors(Dialect):
    paths = ("/vectors", "/models/{model}/vectors")

    def claims(self, request: Request) -> bool:
        return b'"vectors"' in request.body

    def read(self, request: Request) -> Ask:
        texts = json.loads(request.body)["vectors"]
        model = request.variables.get("model", "m")
        return Ask(model=model, prompts=tuple(text.encode() for text in texts), prefill_only=True)

    def writer(self, opened: Opened) -> Writer:
        return VectorWriter(opened)


class LineWriter(Writer):
    def begin(self, prompt_tokens: int) -> bytes:
        return self.frame(b'{"prompt":%d}' % prompt_tokens, b"start")

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        return self.frame(to_json({"text": piece.text, "call": piece.call}), b"piece")

    def closing(self, usage: Usage | None) -> bytes:
        return self.frame(b'{"done":true}')


class Log(Dialect):
    paths = ("/vectors", "/log")
    framing = Lines
    done = None

    def read(self, request: Request) -> Ask:
        return Ask(model="m", prompts=(request.body,), stream=True, max_tokens=2)

    def writer(self, opened: Opened) -> Writer:
        return LineWriter(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"error": message})


class Events(Log):
    paths = ("/events",)
    framing = Dialect.framing


class Job(Page):
    paths = ("/jobs/{id}",)
    recorded = True

    def answer(self, request: Request, server: Server) -> Reply:
        return Reply(body=to_json({"id": request.variables["id"]}))


async def _ask(requests: list[tuple[str, str, bytes, str]]) -> list[tuple[int, dict[str, str], bytes]]:
    loop = asyncio.get_running_loop()
    server = Server(scenario(SimulateOptions(decode_ms=0, prefill_us_per_token=0)), loop, (Log(), Vectors(), Events(), Job()))
    listener = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0)
    answers = []
    try:
        for method, path, body, fault in requests:
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2])
            head = f"{method} {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\nX-Simulate: {fault}\r\n\r\n"
            writer.write(head.encode() + body)
            top, _, rest = (await reader.read()).partition(b"\r\n\r\n")
            status, *fields = top.decode().split("\r\n")
            answers.append((int(status.split()[1]), dict(field.split(": ", 1) for field in fields), rest))
            writer.close()
        answers.append((0, {}, to_json([[row.path, row.status, row.completion_tokens] for row in server.truth.rows()])))
    finally:
        server.close()
        listener.close()
    return answers


def asked(method: str, path: str, body: bytes = b"", fault: str = "") -> tuple[int, str, Any]:
    """Status, content type and body of one answer."""
    status, headers, answer = asyncio.run(_ask([(method, path, body, fault)]))[0]
    return status, headers["Content-Type"], answer


def test_an_answer_without_tokens_comes_when_its_prompts_are_computed() -> None:
    answer, truth = asyncio.run(_ask([("POST", "/vectors", b'{"vectors":["12345678","1234"]}', "")]))
    assert json.loads(answer[2]) == {"vectors": [0, 1], "prompt": 3, "made": 0}
    assert json.loads(truth[2]) == [["/vectors", 200, 0]]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), [
    ("POST", "/models/m1/vectors", b'{"vectors":["a"]}', 200, b'"vectors":[0]'),
    ("POST", "/models/m1/vectors", b"{}", 400, b"no dialect of /models/m1/vectors"),
    ("POST", "/vectors", b"{}", 200, b'{"done":true}'),  # the other dialect at this path takes what nobody claims
    ("GET", "/jobs/7", b"", 200, b'{"id":"7"}'),
    ("POST", "/jobs/7", b"", 405, b"takes GET, not POST"),
    ("GET", "/log", b"", 405, b"takes POST, not GET"),
    ("POST", "/jobs/7/8", b"", 404, b"nothing at /jobs/7/8"),
    ("POST", "/log", b"", 418, b'{"error":"the simulator was told to fail with status 418"}'),
])  # fmt: skip
def test_a_route_is_found_by_path_method_and_claim(method: str, path: str, body: bytes, status: int, said: bytes) -> None:
    got, _, answer = asked(method, path, body, "fail=418" if status == 418 else "")
    assert got == status
    assert said in answer


@pytest.mark.parametrize(("path", "fault", "wanted"), [
    ("/log", "", ('{"prompt":1}\n', '{"text":" ', '","call":""}\n', '{"done":true}\n')),
    ("/log", "lines=crlf,comments", ('\r\n\r\n{"prompt":1}\r\n\r\n', '{"done":true}\r\n')),
    ("/log", "error=1", ('{"prompt":1}\n', '{"error":"the simulator was told to fail here"}\n')),
    ("/events", "", ('event: start\ndata: {"prompt":1}\n\n', 'event: piece\ndata: {"text":" ', 'data: {"done":true}\n\n')),
    ("/events", "no_names", ('data: {"prompt":1}\n\n', 'data: {"text":" ')),
    ("/events", "comments,lines=crlf", (
        ': keep-alive\r\n\r\n: keep-alive\r\n\r\nevent: start\r\ndata: {"prompt":1}\r\n\r\n',)),
    ("/events", "error_event=1", ('event: error\ndata: {"error":"the simulator was told to fail here"}\n\n',)),
    ("/events", "pad=9", ('"text":"xxxxxxxxx ',)),
    ("/events", "call", ('"call":"{\\"text\\":\\" ', '\\"}"}')),
])  # fmt: skip
def test_a_stream_has_the_framing_of_its_dialect(path: str, fault: str, wanted: tuple[str, ...]) -> None:
    status, kind, answer = asked("POST", path, b"{}", fault)
    assert (status, kind) == (200, "application/x-ndjson" if path == "/log" else "text/event-stream; charset=utf-8")
    text = answer.decode()
    assert text.startswith(wanted[0] if "prompt" in wanted[0] else "")
    places = [text.find(piece) for piece in wanted]
    assert -1 not in places and places == sorted(places)
    assert "[DONE]" not in text


@pytest.mark.parametrize(("path", "fault", "kind", "answer"), [
    ("/vectors", "body=html", "text/html", b"<html><body><h1>Bad Gateway</h1></body></html>\n"),
    ("/vectors", "body=empty", "application/json", b""),
    ("/events", "body=html", "text/html", b"<html><body><h1>Bad Gateway</h1></body></html>\n"),
    ("/events", "body=empty", "text/event-stream; charset=utf-8", b""),
])  # fmt: skip
def test_something_else_can_stand_in_place_of_an_answer(path: str, fault: str, kind: str, answer: bytes) -> None:
    assert asked("POST", path, b'{"vectors":["a"]}', fault) == (200, kind, answer)


def test_every_module_of_the_folder_brings_its_routes() -> None:
    routes = Routes(found())
    request = Request("POST", "/v1/chat/completions", {}, {}, b"{}", True, True, 0, 0)
    at, variables = routes.at("/v1/chat/completions")
    assert [type(route).__name__ for route in at] == ["Chat"]
    assert pick(at, request) is at[0]
    assert (variables, method_of(at[0])) == ({}, "POST")
