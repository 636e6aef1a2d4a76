"""A third party's data set with pictures, tools and recorded answers, and its endpoint with forms, as a server sees them.

Another third party's database has all requests, and its tokens are in their headers.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from aiperf_tokenizer_builtin import Builtin
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

PACKAGE, OFFICE = (ROOT / "tests" / "strangers" / name for name in ("gallery", "office"))
KEY = "badge-key-7c1e"
PICTURE = (PACKAGE / "src" / "acme_gallery" / "kite.png").read_bytes()
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "How warm it is.", "parameters": {"type": "object", "properties": {}}},
}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"place":"Lucca"}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "18"}
OPENING = [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4"}]
LIVE = {"role": "assistant", "content": "LIVE"}
CARD_ANSWER = {"small": "a", "large": "one two three four five"}


class Received(NamedTuple):
    path: str
    content_type: str
    body: bytes
    authorization: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gallery

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(Received(self.path, self.headers["Content-Type"], body, self.headers["Authorization"]))
        calls = b'"How warm is it?"}]' in body
        chat = {"choices": [{"message": CALL if calls else LIVE, "finish_reason": "tool_calls" if calls else "stop"}]}
        answer = json.dumps(CARD_ANSWER if self.path == "/postcards" else chat).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Gallery(ThreadingHTTPServer):
    """Keeps the requests, in the order of their arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the strangers, installed as wheels."""
    work = tmp_path_factory.mktemp("gallery")
    shelf = Shelf(work / "shelf", {"acme-gallery": PACKAGE, "acme-office": OFFICE})
    packages = [*suite(), "aiperf-core[testing]", "acme-gallery", "acme-office"]
    made = Program(work, python=shelf.environment(work / "environment", packages))
    made.environment["AIPERF_CACHE_DIR"] = str(work / "cache")
    return made


def run(aiperf: Program, folder: Path, *words: str | int) -> tuple[Done, list[Received]]:
    """A run of one slot, and what the server received."""
    with Gallery() as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        done = aiperf(
            "profile", "--model", "m", "--url", f"http://127.0.0.1:{server.server_port}", "--tokenizer", "builtin",
            "--custom-dataset-type", "gallery", "--random-seed", 5, "--concurrency", 1, "--ui", "none",
            "--badge-key", KEY, "--artifact-dir", folder, *words,
        )  # fmt: skip
        server.shutdown()
    assert done.code == 0, done.err
    return done, server.received


@pytest.fixture(scope="module")
def tours(aiperf: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, list[Received]]:
    """Two tours of four requests each, a recorded body, and a conversation whose answer calls a tool."""
    return run(aiperf, tmp_path_factory.mktemp("tours"), "--num-conversations", 4)


@pytest.fixture(scope="module")
def cards(aiperf: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, list[Received]]:
    words = ("--endpoint-type", "postcard", "--num-conversations", 4, "--extra-inputs", "field:large,paper:thick")
    renewed = ("--badge-lifetime", "0.000001", "--export-level", "raw")
    return run(aiperf, tmp_path_factory.mktemp("cards"), *words, *renewed)


def counts(done: Done, metric: str) -> list[float]:
    rows = sorted(done.lines("profile_export.jsonl"), key=lambda row: row["metadata"]["request_start_ns"])
    return [row["metrics"][metric]["value"] for row in rows]


def tokens(*texts: str) -> int:
    return Builtin().open("builtin").count(" ".join(texts))


# Tours


def messages_of_a_tour() -> Iterator[list[dict[str, Any]]]:
    """The messages of the four requests, each with its history."""
    picture = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    shown = [{"type": "text", "text": "What is shown?"}, {"type": "image_url", "image_url": {"url": picture}}]
    chat: list[dict[str, Any]] = [*OPENING, {"role": "user", "content": shown}]
    yield chat
    chat = [*chat, CALL, RESULT, {"role": "user", "content": "And how warm is it?"}]
    yield chat
    yield [*chat, {"role": "assistant", "content": "18 degrees."}, {"role": "user", "content": "Thank you."}]
    yield [*OPENING, {"role": "user", "content": "Once more: what is shown?"}]


def test_a_tour_is_sent_as_it_was_written(tours: tuple[Done, list[Received]]) -> None:
    _, received = tours
    assert len(received) == 11, "silent turns send nothing"
    for first in (0, 4):
        bodies = [request.json for request in received[first : first + 4]]
        assert [body["messages"] for body in bodies] == list(messages_of_a_tour())
        assert [body.get("tools") for body in bodies] == [[TOOL], [TOOL], [TOOL], None]
    assert [request.json.get("seed") for request in received] == [5, *[None] * 3, 6, *[None] * 6]


def test_a_recorded_body_is_sent_verbatim(tours: tuple[Done, list[Received]]) -> None:
    _, received = tours
    assert received[8].json == {"model": "recorded", "messages": [CALL, RESULT], "tools": [TOOL]}


def test_a_live_call_of_a_tool_stands_before_its_result(tours: tuple[Done, list[Received]]) -> None:
    _, received = tours
    question = {"role": "user", "content": "How warm is it?"}
    assert [request.json["messages"] for request in received[9:]] == [[question], [question, CALL, RESULT]]
    assert [request.json["tools"] for request in received[9:]] == [[TOOL], [TOOL]]


def test_tools_and_calls_count_as_input(tours: tuple[Done, list[Received]]) -> None:
    done, _ = tours
    described = ["weather", "How warm it is.", '{"type":"object","properties":{}}']
    call = ["weather", '{"place":"Lucca"}', "18"]
    opening = ["What is 2+2?", "4"]
    second = [*opening, "What is shown?", *call, "And how warm is it?"]
    tour = [
        tokens(*opening, "What is shown?", *described), tokens(*second, *described),
        tokens(*second, "18 degrees.", "Thank you.", *described), tokens(*opening, "Once more: what is shown?"),
    ]  # fmt: skip
    live = [tokens("How warm is it?", *described), tokens("How warm is it?", *call, *described)]
    assert counts(done, "input_sequence_length") == [*tour, *tour, tokens(*call, *described), *live]


def test_pictures_of_the_history_count(tours: tuple[Done, list[Received]]) -> None:
    done, _ = tours
    summary = done.json()
    assert summary["request_count"]["avg"] == 11
    rows = done.lines("profile_export.jsonl")
    assert sum(row["metrics"].get("num_images", {"value": 0})["value"] for row in rows) == 6, "three requests of each tour"


# Postcards


def test_a_form_has_named_texts_both_extras_and_the_picture(cards: tuple[Done, list[Received]]) -> None:
    _, received = cards
    assert len(received) == 4
    assert len({request.content_type for request in received}) == 1, "one boundary a run"
    for number, request in enumerate(received):
        assert request.path == "/postcards"
        head = f"Content-Type: {request.content_type}\r\n\r\n".encode()
        parts = list(BytesParser(policy=HTTP).parsebytes(head + request.body).iter_parts())
        fields: dict[Any, Any] = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts
        }
        assert json.loads(fields["title"]) == ["What is shown?"]
        assert json.loads(fields["run"]) == {"paper": "thick"}, "field belongs to the endpoint"
        assert json.loads(fields["row"]) == {"seed": 5 + number}
        assert (fields["picture"], parts[-1].get_content_type()) == (PICTURE, "image/png")


def test_an_extra_input_that_the_endpoint_takes_is_known_where_answers_are_read(cards: tuple[Done, list[Received]]) -> None:
    done, _ = cards
    assert counts(done, "output_sequence_length") == [tokens(CARD_ANSWER["large"])] * 4


def test_the_endpoint_counts_its_input_in_texts_and_ids(cards: tuple[Done, list[Received]]) -> None:
    done, _ = cards
    assert counts(done, "input_sequence_length") == [tokens("What is shown?") + 1] * 4


# The office


def test_a_token_is_kept_while_it_is_young_and_renewed_when_it_is_old(
    tours: tuple[Done, list[Received]], cards: tuple[Done, list[Received]]
) -> None:
    assert all(request.authorization.startswith("Bearer ") for request in tours[1])
    assert [len({request.authorization for request in received}) for _, received in (tours, cards)] == [1, 4]


def test_neither_the_key_nor_a_token_is_in_a_file(cards: tuple[Done, list[Received]]) -> None:
    done, received = cards
    secrets = [KEY.encode(), *(request.authorization.removeprefix("Bearer ").encode() for request in received)]
    files = [path for path in done.artifacts.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path.name for path in files for secret in secrets if secret in path.read_bytes()] == []


def test_the_database_has_a_row_for_each_request(tours: tuple[Done, list[Received]]) -> None:
    done, _ = tours
    with sqlite3.connect(done.artifacts / "archive.sqlite") as database:
        rows = database.execute("SELECT id, latency_ms, output_tokens, error FROM requests ORDER BY started_s").fetchall()
    database.close()
    lines = sorted(done.lines("profile_export.jsonl"), key=lambda row: row["metadata"]["request_start_ns"])
    assert [row[0] for row in rows] == [line["metadata"]["x_request_id"] for line in lines]
    assert [row[1] for row in rows] == pytest.approx([line["metrics"]["request_latency"]["value"] for line in lines], abs=0.5)
    assert [row[2] for row in rows] == [line["metrics"]["output_token_count"]["value"] for line in lines]
    assert {row[3] for row in rows} == {None} and len(rows) == 11


def test_both_plugins_keep_their_contracts(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-gallery")
    assert done.code == 0 and "was not run" not in done.err, done.out + done.err
