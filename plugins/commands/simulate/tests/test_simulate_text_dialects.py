"""What the simulator's text dialects read and write: TGI, Triton's generate extension, SGLang, SOLIDO RAG, Ollama."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Piece, Usage
from aiperf_command_simulate.dialects import Routes, found, pick
from aiperf_command_simulate.faults import Faults
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.jobs import Jobs
from aiperf_command_simulate.truth import Record

ROUTES = Routes(found())
USAGE = Usage(5, 2, 1)


def request(path: str, body: dict[str, Any], **headers: str) -> Request:
    return Request("POST", path, {}, headers, json.dumps(body).encode(), True, True, 0, 0, ROUTES.at(path)[1])


def routed(path: str, body: dict[str, Any], **headers: str) -> tuple[Dialect, Ask]:
    asked = request(path, body, **headers)
    dialect = pick(ROUTES.at(path)[0], asked)
    assert isinstance(dialect, Dialect)
    return dialect, dialect.read(asked)


def written(
    path: str, body: dict[str, Any], *pieces: Piece, whole: bool = False, call: str | None = None, **headers: str
) -> bytes:
    dialect, ask = routed(path, body, **headers)
    faults = Faults()
    opened = Opened(
        number=7, created_s=0, model=ask.model, ask=ask, faults=faults, frame=dialect.framing("lf", faults), call=call,
        record=Record(7, 1, path, None, None, 0, 0), jobs=Jobs(0, 0),
    )  # fmt: skip
    writer = dialect.writer(opened)
    if whole:
        return writer.whole([*pieces], USAGE)
    begin = writer.begin(USAGE.prompt)
    return begin + b"".join(writer.event(piece, USAGE) for piece in pieces) + writer.closing(USAGE)


PIECES = (Piece(0, "a"), Piece(0, " b", finish="length"))


def test_tgi_writes_no_space_and_its_text_last() -> None:
    stream = written("/generate_stream", {"inputs": "Hi", "parameters": {"max_new_tokens": 2}}, *PIECES)
    first, last = stream.decode().strip().split("\n\n")
    assert first.startswith('data:{"index":1,"token":{"id":1,"text":"a"')
    answer = json.loads(last.removeprefix("data:"))
    assert (answer["token"]["text"], answer["generated_text"]) == (" b", "a b")
    assert answer["details"] == {"finish_reason": "length", "generated_tokens": 2, "input_length": 5, "seed": None}
    whole = json.loads(written("/generate", {"inputs": "Hi", "parameters": {"details": True}}, Piece(0, "a b"), whole=True))
    assert (whole["generated_text"], whole["details"]["prefill"]) == ("a b", [])


def test_triton_repeats_the_text_for_a_model_that_echoes() -> None:
    paths = (f"/v2/models/{name}/generate_stream" for name in ("m", "m-echo"))
    plain, echo = (written(path, {"text_input": "Hi"}, *PIECES).decode() for path in paths)
    assert [json.loads(line[6:])["text_output"] for line in plain.split("\n\n")[:-1]] == ["a", " b"]
    assert [json.loads(line[6:])["text_output"] for line in echo.split("\n\n")[:-1]] == ["a", "a b"]


def test_sglang_repeats_the_text_of_each_choice() -> None:
    body = {"text": "Hi", "stream": True, "sampling_params": {"n": 2}}
    pieces = Piece(0, "a", made=1), Piece(1, "x", made=1), Piece(0, "b", finish="stop", made=2)
    stream = written("/generate", body, *pieces).decode()
    events = [json.loads(line[6:]) for line in stream.split("\n\n")[:-1]]
    assert [(event["index"], event["text"]) for event in events] == [(0, "a"), (1, "x"), (0, "ab")]
    assert [event["meta_info"]["completion_tokens"] for event in events] == [1, 1, 2]
    assert events[-1]["meta_info"]["finish_reason"] == {"type": "stop"}
    assert events[0]["meta_info"]["prompt_tokens"] == 5
    assert len(json.loads(written("/generate", body, Piece(0, "a"), Piece(1, "x"), whole=True))) == 2


def test_solido_streams_where_the_header_asks_for_it() -> None:
    body = {"query": ["Hi", "you"], "inference_model": "m"}
    assert not routed("/rag/api/prompt", body)[1].stream
    assert routed("/rag/api/prompt", body, accept="text/event-stream")[1].stream
    stream = written("/rag/api/prompt", body, *PIECES, accept="text/event-stream").decode().strip().split("\n\n")
    assert [json.loads(line[6:])["content"] for line in stream] == ["a", " b", ""]
    assert len(json.loads(stream[-1][6:])["sources"]) == 2


def test_ollama_ends_with_counts_and_durations_and_cuts_the_prompt_to_its_context() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "options": {"num_ctx": 3}}
    lines = written("/api/chat", body, Piece(0, "", "hm"), *PIECES).decode().splitlines()
    *events, end = map(json.loads, lines)
    assert [event["message"].get("thinking") for event in events] == ["hm", None, None]
    assert (end["done"], end["done_reason"], end["prompt_eval_count"], end["eval_count"]) == (True, "length", 3, 2)
    assert end["total_duration"] >= end["load_duration"] > 0


def test_ollama_sends_a_call_in_one_line() -> None:
    body = {"model": "m", "messages": [{"content": "Hi"}], "tools": [{"function": {"name": "f"}}]}
    pieces = Piece(0, "", call='{"a":'), Piece(0, "", call='"b"}', finish="stop")
    events = list(map(json.loads, written("/api/chat", body, *pieces, call="f").decode().splitlines()))
    calls = [event["message"].get("tool_calls") for event in events]
    assert calls == [None, [{"function": {"name": "f", "arguments": {"a": "b"}}}], None]


@pytest.mark.parametrize(("path", "body"), [
    ("/generate_stream", {"parameters": {}}),
    ("/v2/models/m/generate", {"text_input": 7}),
    ("/generate", {"text": "Hi", "sampling_params": {"max_new_tokens": -1}}),
    ("/rag/api/prompt", {"query": "Hi"}),
    ("/api/chat", {"model": "m", "messages": []}),
])  # fmt: skip
def test_a_body_of_another_form_is_refused(path: str, body: dict[str, Any]) -> None:
    with pytest.raises(AskError):
        routed(path, body)


@pytest.mark.parametrize(("path", "error"), [
    ("/generate_stream", {"error": "busy", "error_type": "x"}), ("/v2/models/m/generate", {"error": "busy"}),
    ("/api/chat", {"error": "busy"}),
])  # fmt: skip
def test_an_error_has_the_form_of_its_server(path: str, error: dict[str, str]) -> None:
    (dialect,) = ROUTES.at(path)[0]
    assert isinstance(dialect, Dialect)
    assert json.loads(dialect.error("busy", "x", 500)) == error
