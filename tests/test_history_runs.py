"""What a conversation's later turns repeat of the answers, judged by what the simulator received."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_dialects.prompts import prompt_of
from aiperf_tokenizer_builtin import Builtin
from program import Done, Program

FUNCTION = {"name": "look", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}
TOOLS = {
    "chat": {"type": "function", "function": FUNCTION},
    "messages": {"name": "look", "input_schema": FUNCTION["parameters"]},
    "responses": {"type": "function", **FUNCTION},
}
CALLS = "X-Simulate: call;reasoning=2;tokens=6"
TELLS = "X-Simulate: reasoning=2;tokens=6"


@pytest.fixture(scope="module")
def keeping() -> Iterator[Simulator]:
    """A simulator that keeps the bodies of requests."""
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1) as simulator:
        yield simulator


def bodies(tmp_path: Path, simulator: Simulator, kind: str, *words: str, extra: dict[str, Any] | None = None) -> list[Any]:
    """What the simulator received in one session of three turns, each a number and a body."""
    simulator.reset()
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", kind, "--tokenizer", "builtin", "--isl", 9,
        "--session-turns-mean", 3, "--num-conversations", 1, "--export-level", "raw", "--ui", "none",
        "--extra-inputs", json.dumps({"tools": [TOOLS[kind]], **(extra or {})}), *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = simulator.truth()["requests"]
    assert [row["outcome"] for row in rows] == ["completed"] * 3
    received = [json.loads(row["body"]) for row in rows]
    shown = [line["payload"] for line in done.lines("profile_export_raw.jsonl")]
    assert shown == received
    return [(f"{row['number']:010d}", body) for row, body in zip(rows, received, strict=True)]


@pytest.mark.parametrize("words", [["--streaming"], []], ids=["streamed", "whole"])
def test_chat_repeats_calls_with_their_ids(words: list[str], tmp_path: Path, keeping: Simulator) -> None:
    (first, opening), (second, later), (_, last) = bodies(tmp_path, keeping, "chat", *words, "--header", CALLS)
    user, called, asked = later["messages"]
    assert (user, asked["role"]) == (opening["messages"][0], "user")
    assert called["role"] == "assistant"
    assert called["content"] is None
    (call,) = called["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == (f"call-{int(first)}-0", "function", "look")
    assert len(json.loads(call["function"]["arguments"])["text"].split()) == 4  # of 6 tokens 2 were reasoning
    assert last["messages"][:3] == later["messages"]
    assert last["messages"][3]["tool_calls"][0]["id"] == f"call-{int(second)}-0"


def test_chat_repeats_text_without_its_reasoning(tmp_path: Path, keeping: Simulator) -> None:
    _, (_, later), _ = bodies(tmp_path, keeping, "chat", "--streaming", "--header", TELLS)
    _, answer, _ = later["messages"]
    assert answer.keys() == {"role", "content"}
    assert len(answer["content"].split()) == 4


@pytest.mark.parametrize("words", [["--streaming"], []], ids=["streamed", "whole"])
def test_messages_repeats_thinking_with_its_signature_before_the_use_of_a_tool(
    words: list[str], tmp_path: Path, keeping: Simulator
) -> None:
    (first, opening), (second, later), (_, last) = bodies(tmp_path, keeping, "messages", *words, "--header", CALLS)
    user, answer, asked = later["messages"]
    assert (user, answer["role"], asked["role"]) == (opening["messages"][0], "assistant", "user")
    thinking, used = answer["content"]
    assert (thinking["type"], thinking["signature"], len(thinking["thinking"].split())) == ("thinking", "c2ln", 2)
    assert (used["type"], used["id"], used["name"]) == ("tool_use", f"toolu_{first}", "look")
    assert len(used["input"]["text"].split()) == 4
    assert last["messages"][:3] == later["messages"]
    assert last["messages"][3]["content"][1]["id"] == f"toolu_{second}"


def test_responses_repeats_items_but_no_reasoning(tmp_path: Path, keeping: Simulator) -> None:
    (first, opening), (_, later), (_, last) = bodies(tmp_path, keeping, "responses", "--streaming", "--header", CALLS)
    user, call, asked = later["input"]
    assert (user, asked["role"]) == (opening["input"][0], "user")
    assert (call["type"], call["id"], call["call_id"]) == ("function_call", f"fc_{first}", f"call_{first}")
    assert (call["name"], len(json.loads(call["arguments"])["text"].split())) == ("look", 4)
    assert [item["type"] for item in last["input"]] == ["message", "function_call", "message", "function_call", "message"]
    assert "previous_response_id" not in later


def test_responses_names_the_stored_answer_in_place_of_it(tmp_path: Path, keeping: Simulator) -> None:
    words = ["--streaming", "--use-server-token-count", "--header", TELLS]
    (first, opening), (second, later), (_, last) = bodies(tmp_path, keeping, "responses", *words, extra={"store": True})
    assert "previous_response_id" not in opening
    assert [body["previous_response_id"] for body in (later, last)] == [f"resp_{first}", f"resp_{second}"]
    assert [len(body["input"]) for body in (opening, later, last)] == [1, 1, 1]


@pytest.mark.parametrize("kind", TOOLS)
def test_tools_count_with_each_turn(kind: str, tmp_path: Path, keeping: Simulator) -> None:
    sent = [msgspec.json.encode(body) for _, body in bodies(tmp_path, keeping, kind, "--streaming", "--header", TELLS)]
    counted, count = list(map(prompt_of, sent)), Builtin().open("builtin").count
    assert all("look" in each.texts for each in counted if each is not None)
    records = Done(0, "", "", tmp_path / "artifacts").lines("profile_export.jsonl")
    lengths = [record["metrics"]["input_sequence_length"]["value"] for record in records]
    assert lengths == [count(" ".join(each.texts)) for each in counted if each is not None]


def test_a_failed_answer_is_not_repeated(tmp_path: Path, keeping: Simulator) -> None:
    keeping.reset()
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", keeping.url, "--tokenizer", "builtin", "--isl", 9, "--session-turns-mean", 2,
        "--num-conversations", 1, "--streaming", "--header", "X-Simulate: error=2;tokens=6", "--ui", "none",
    )  # fmt: skip
    assert "SimulatedError" in done.out
    first, second = (json.loads(row["body"])["messages"] for row in keeping.truth()["requests"])
    assert [message["role"] for message in second] == ["user", "user"]
    assert second[0] == first[0]
