"""Endpoints of a third party whose answers no decoder of single events reads, each against a server that judges."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the stranger, installed as a wheel."""
    work = tmp_path_factory.mktemp("dialects")
    shelf = Shelf(work / "shelf", {"acme-dialects": ROOT / "tests" / "strangers" / "dialects"})
    made = Program(work, python=shelf.environment(work / "environment", [*suite(), "acme-dialects"]))
    made.environment["AIPERF_CACHE_DIR"] = str(work / "cache")
    return made


class Judge(BaseHTTPRequestHandler):
    """A server that keeps the requests: method, path, headers by their names in small letters, and body."""

    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, str, dict[str, str], dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.answer(body)

    def answer(self, body: dict[str, Any]) -> None:
        raise NotImplementedError

    def stream(self, kind: str, pieces: list[bytes]) -> None:
        """An answer in pieces, each a chunk of its own."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in [*pieces, b""]:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve(judge: type[Judge]) -> Iterator[tuple[str, type[Judge]]]:
    judge.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), judge)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", judge
    server.shutdown()
    server.server_close()


def profile(aiperf: Program, folder: Path, url: str, *words: str | int) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", url, "--tokenizer", "builtin", "--isl", 20, "--osl", 6, "--ui", "none",
        "--artifact-dir", folder / "artifacts", *words,
    )  # fmt: skip


# Messages


class Letters(Judge):
    """Answers with thinking and three pieces of text; refuses thinking that comes back without its signature."""

    def answer(self, body: dict[str, Any]) -> None:
        number = len(self.requests)
        usage = {"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 4, "output_tokens": 1}
        word = {"type": "content_block_delta", "index": 1}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {"container": {"id": f"box {number}"}, "content": [], "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": f"sign {number}"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            *({**word, "delta": {"type": "text_delta", "text": f" word {i}"}} for i in range(5)),
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
        self.stream(
            "text/event-stream", [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
        )


@pytest.fixture(scope="module")
def letters(aiperf: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Done, type[Judge]]]:
    """Three conversations of two turns."""
    for url, judge in serve(Letters):
        folder = tmp_path_factory.mktemp("letters")
        done = profile(
            aiperf, folder, url, "--endpoint-type", "letters", "--streaming", "--concurrency", 1,
            "--conversation-num", 3, "--conversation-turn-mean", 2, "--conversation-turn-stddev", 0, "--api-key", "k1",
        )  # fmt: skip
        yield done, judge


def test_usage_of_two_events_is_one(letters: tuple[Done, type[Judge]]) -> None:
    done, _ = letters
    assert done.code == 0, done.err
    rows = [line["metrics"] for line in done.lines("profile_export.jsonl")]
    counts = {
        "usage_prompt_tokens": 3 + 20 + 4, "usage_prompt_cache_read_tokens": 20, "usage_prompt_cache_write_tokens": 4,
        "usage_completion_tokens": 9,
    }  # fmt: skip
    assert [{name: row[name]["value"] for name in counts} for row in rows] == [counts] * 6


def test_thinking_is_reasoning(letters: tuple[Done, type[Judge]]) -> None:
    done, _ = letters
    (tokens,) = {line["metrics"]["reasoning_token_count"]["value"] for line in done.lines("profile_export.jsonl")}
    assert tokens == 2, "of 'Hm.'"


def test_the_next_turn_has_the_answer_as_the_endpoint_repeats_it(letters: tuple[Done, type[Judge]]) -> None:
    _, judge = letters
    bodies = [body for *_, body in judge.requests]
    assert [len(body["messages"]) for body in bodies] == [1, 3] * 3
    for number in (1, 3, 5):
        assert bodies[number]["messages"][1] == {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": f"sign {number}"},
                {"type": "text", "text": " word 0 word 1 word 2 word 3 word 4"},
            ],
        }
        assert bodies[number]["container"] == f"box {number}", "the state of the answer before"
        assert "container" not in bodies[number - 1], "a first turn has no state"
    assert {headers["anthropic-version"] for _, _, headers, _ in judge.requests} == {"2023-06-01"}
    assert {headers["x-api-key"] for _, _, headers, _ in judge.requests} == {"k1"}


# Lines


class Llamas(Judge):
    """Answers with an object in each line, cut in the middle of lines."""

    def answer(self, body: dict[str, Any]) -> None:
        words = [{"response": f" word {i}"} if "prompt" in body else {"message": {"content": f" word {i}"}} for i in range(4)]
        lines: list[dict[str, Any]] = [{"model": body["model"], **word, "done": False} for word in words]
        lines.append({"model": body["model"], "done": True, "done_reason": "stop", "prompt_eval_count": 21, "eval_count": 8})
        text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        self.stream("application/x-ndjson", [text[at : at + 50] for at in range(0, len(text), 50)])


@pytest.fixture(scope="module")
def llamas(aiperf: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Done, Done, type[Judge]]]:
    """Four conversations of two turns with two models in turn; then three requests of the dialect chat."""
    for url, judge in serve(Llamas):
        turns = ("--conversation-num", 4, "--conversation-turn-mean", 2, "--conversation-turn-stddev", 0, "--concurrency", 1)
        ask = ("--wait-for-model-timeout", 30, "--wait-for-model-mode", "inference", "--model", "n/1")
        folder = tmp_path_factory.mktemp("llamas")
        done = profile(aiperf, folder, url, "--endpoint-type", "llamas", "--streaming", *ask, *turns)
        foreign = profile(aiperf, folder / "chat", url, "--endpoint-type", "chat", "--streaming", "--request-count", 3)
        yield done, foreign, judge


def test_lines_are_a_stream(llamas: tuple[Done, Done, type[Judge]]) -> None:
    done, _, _ = llamas
    assert done.code == 0, done.err
    rows = [line["metrics"] for line in done.lines("profile_export.jsonl")]
    assert len(rows) == 8
    assert {(row["usage_prompt_tokens"]["value"], row["usage_completion_tokens"]["value"]) for row in rows} == {(21, 8)}
    assert all(row["time_to_first_token"]["value"] <= row["request_latency"]["value"] for row in rows)
    assert "came whole" not in done.out


def test_every_turn_and_model_goes_its_own_way(llamas: tuple[Done, Done, type[Judge]]) -> None:
    _, _, judge = llamas
    probes, asked = judge.requests[:2], judge.requests[2:10]
    assert {(path, body["prompt"]) for _, path, _, body in probes} == {
        ("/m/generate", "Are you there?"), ("/n%2F1/generate", "Are you there?")
    }  # fmt: skip
    assert [path for _, path, *_ in asked] == ["/m/generate", "/m/chat", "/n%2F1/generate", "/n%2F1/chat"] * 2
    assert {headers["accept"] for _, _, headers, _ in judge.requests[:10]} == {"application/x-ndjson"}
    assert [headers.get("x-llama") for _, _, headers, _ in asked] == [None, "again"] * 4
    assert {body["messages"][1]["content"] for *_, body in asked[1::2]} == {" word 0 word 1 word 2 word 3"}


def test_a_stream_of_another_framing_is_told(llamas: tuple[Done, Done, type[Judge]]) -> None:
    _, foreign, _ = llamas
    assert foreign.code == 1
    assert foreign.json()["measurement"]["verdict"] == "none"  # none of the answers is good
    assert "3 answers came whole, where streams were asked for" in " ".join(foreign.out.split())


# Prompts as ids


class NumbersJudge(Judge):
    def answer(self, body: dict[str, Any]) -> None:
        said = json.dumps({"said": "one two"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


def test_a_type_that_takes_ids_sends_no_text(aiperf: Program, tmp_path: Path) -> None:
    for url, judge in serve(NumbersJudge):
        done = profile(aiperf, tmp_path, url, "--endpoint-type", "numbers", "--request-count", 3)
        assert done.code == 0, done.err
        assert [len(body["ids"]) for *_, body in judge.requests] == [20] * 3
    assert done.json()["input_sequence_length"]["avg"] == 20


# A framing of the endpoint's own


class Sequences(Llamas):
    """The same answers as JSON text sequences, cut in the middle of texts."""

    def stream(self, kind: str, pieces: list[bytes]) -> None:
        text = b"".join(b"\x1e%b\n" % line for line in b"".join(pieces).splitlines())
        super().stream("application/json-seq", [text[at : at + 50] for at in range(0, len(text), 50)])


def test_an_endpoint_with_a_framing_of_its_own_streams(aiperf: Program, tmp_path: Path) -> None:
    for url, judge in serve(Sequences):
        done = profile(aiperf, tmp_path, url, "--endpoint-type", "sequences", "--streaming", "--request-count", 5)
        assert done.code == 0, done.err
        assert [body["stream"] for *_, body in judge.requests] == [True] * 5
    rows = [line["metrics"] for line in done.lines("profile_export.jsonl")]
    assert [row["usage_completion_tokens"]["value"] for row in rows] == [8] * 5
    assert all(row["output_token_count"]["value"] > 0 for row in rows)
    assert all(row["time_to_first_token"]["value"] <= row["request_latency"]["value"] for row in rows)
    assert "came whole" not in done.out
