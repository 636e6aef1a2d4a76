"""What counts as input tokens, by API: body in, texts and ids out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf_dialects.prompts import chat_of, prompt_of

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"at":"Lucca"}'}}
TOOL = {"name": "weather", "description": "How warm.", "parameters": {"type": "object"}}
BODIES: dict[str, tuple[dict[str, Any], list[str], list[int]]] = {
    "chat": ({"messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}]},
             ["Be terse.", "Hi"], []),
    "parts and a picture": (
        {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "i"}}, {"type": "text", "text": "b"}]}]},
        ["a", "b"], []),
    "calls and tools": (
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [CALL]},
                      {"role": "tool", "tool_call_id": "c1", "content": "18"}],
         "tools": [{"type": "function", "function": TOOL}]},
        ["weather", '{"at":"Lucca"}', "18", "weather", "How warm.", '{"type":"object"}'], []),
    "arguments as an object": (
        {"messages": [{"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "f", "arguments": {"a": 1}}}]}]},
        ["", "f", '{"a":1}'], []),
    "an older call": (
        {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]}, ["f", "{}"], []),
    "responses": (
        {"instructions": "Be terse.", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "18"},
            {"type": "custom_tool_call", "name": "g", "input": "x"},
            {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "y"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "not sent to the model as text"}]}],
         "tools": [{"type": "function", **TOOL}]},
        ["Be terse.", "Hi", "f", "{}", "18", "g", "x", "y", "weather", "How warm.", '{"type":"object"}'], []),
    "responses of one text": ({"input": "Hi"}, ["Hi"], []),
    "instructions in parts": (
        {"instructions": [{"type": "input_text", "text": "Be"}], "input": [{"role": "user", "content": "Hi"}]},
        ["Be", "Hi"], []),
    "messages": (
        {"system": [{"type": "text", "text": "Be terse."}], "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"},
                                              {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "18"}]},
                                         {"type": "image", "source": {}}]}],
         "tools": [{"name": "f", "input_schema": {"type": "object"}}]},
        ["Be terse.", "Hi", "Hm.", "f", '{"a":1}', "18", "f", '{"type":"object"}'], []),
    "prompt": ({"prompt": "Once"}, ["Once"], []),
    "prompts": ({"prompt": ["a", "b"]}, ["a", "b"], []),
    "ids": ({"prompt": [1, 2]}, [], [1, 2]),
    "lists of ids": ({"input": [[1, 2], [3]]}, [], [1, 2, 3]),
    "inputs": ({"inputs": "Say hi", "parameters": {}}, ["Say hi"], []),
    "tensors": ({"inputs": [{"name": "max_tokens", "data": [8]}, {"name": "text_input", "data": ["Hi"]}]}, ["Hi"], []),
    "a query list": ({"query": ["a", "b"], "filters": {}}, ["a", "b"], []),
    "NIM ranking": (
        {"query": {"text": "dogs"}, "passages": [{"text": "cats"}, {"text": "puppies"}]}, ["dogs", "cats", "puppies"], []),
    "TEI ranking": ({"query": "dogs", "texts": ["cats"]}, ["dogs", "cats"], []),
    "Cohere ranking": ({"model": "m", "query": "dogs", "documents": ["cats"]}, ["dogs", "cats"], []),
    "text_input": ({"text_input": ["Hi"], "max_tokens": 3}, ["Hi"], []),
    "input_ids": ({"input_ids": [[5, 6]], "sampling_params": {}}, [], [5, 6]),
    "token_ids": ({"token_ids": [5, 6, 7]}, [], [5, 6, 7]),
    "text": ({"text": "Hi", "sampling_params": {}}, ["Hi"], []),
    "a picture alone": ({"input": [{"type": "image_url", "url": "data:"}]}, [], []),
}  # fmt: skip


@pytest.mark.parametrize(("body", "texts", "ids"), BODIES.values(), ids=BODIES.keys())
def test_a_body_counts(body: dict[str, Any], texts: list[str], ids: list[int]) -> None:
    prompt = prompt_of(msgspec.json.encode(body))
    assert prompt is not None
    assert ([*prompt.texts], [*prompt.ids]) == (texts, ids)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"7", b'{"model":"m"}', b'{"prompt":{"a":1}}', b"[" * 100_000])
def test_any_other_body_has_no_prompt(body: bytes) -> None:
    assert prompt_of(body) is None


def called(name: str, arguments: Any, **identity: str) -> dict[str, Any]:
    return {**identity, "type": "function", "function": {"name": name, "arguments": arguments}}


CHATS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "chat": ([{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}], []),
    "parts and a picture": ([{"role": "user", "content": "a b"}], []),
    "calls and tools": (
        [{"role": "assistant", "content": "", "tool_calls": [called("weather", {"at": "Lucca"}, id="c1")]},
         {"role": "tool", "content": "18", "tool_call_id": "c1"}], ["weather", "How warm.", '{"type":"object"}']),
    "arguments as an object": ([{"role": "assistant", "content": "", "tool_calls": [called("f", {"a": 1})]}], []),
    "an older call": ([{"role": "assistant", "content": "", "tool_calls": [called("f", {})]}], []),
    "responses": (
        [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"},
         {"role": "assistant", "content": "", "tool_calls": [called("f", {}, id="c")]},
         {"role": "tool", "content": "18", "tool_call_id": "c"},
         {"role": "assistant", "content": "", "tool_calls": [called("g", "x")]}, {"role": "tool", "content": "y"}],
        ["weather", "How warm.", '{"type":"object"}']),
    "responses of one text": ([{"role": "user", "content": "Hi"}], []),
    "instructions in parts": ([{"role": "system", "content": "Be"}, {"role": "user", "content": "Hi"}], []),
    "messages": (
        [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"},
         {"role": "assistant", "content": "Hm.", "tool_calls": [called("f", {"a": 1}, id="t")]},
         {"role": "tool", "content": "18"}],
        ["f", '{"type":"object"}']),
}  # fmt: skip


@pytest.mark.parametrize("name", CHATS)
def test_messages_are_those_that_a_chat_template_takes(name: str) -> None:
    chat = chat_of(msgspec.json.encode(BODIES[name][0]))
    assert chat is not None
    assert (chat.messages, chat.tools) == CHATS[name]


def test_calls_that_follow_one_another_are_of_one_message() -> None:
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "not json"} for n in range(2)]
    chat = chat_of(msgspec.json.encode({"input": calls}))
    assert chat is not None
    assert chat.messages == [
        {"role": "assistant", "content": "", "tool_calls": [called("f", "not json", id=f"c{n}") for n in range(2)]}
    ]


def test_a_result_and_a_text_are_two_messages() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": "18"}, {"type": "text", "text": "and?"}]
    chat = chat_of(msgspec.json.encode({"messages": [{"role": "user", "name": "ada", "content": blocks}]}))
    assert chat is not None
    assert chat.messages == [
        {"role": "tool", "content": "18", "tool_call_id": "t"}, {"role": "user", "content": "and?", "name": "ada"}
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"7", b'{"prompt":"Hi"}', b'{"input":["a"]}', b'{"messages":7}', b'{"messages":'])
def test_a_body_without_messages_is_no_chat(body: bytes) -> None:
    assert chat_of(body) is None


@pytest.mark.parametrize("item", [
    7, {}, {"role": None}, {"role": "user", "content": [7, {"type": "text", "text": 7}]}, {"type": "reasoning", "name": None},
    {"role": "assistant", "tool_calls": [{"function": None}, 7], "function_call": 7}, {"type": "x_output"},
])  # fmt: skip
def test_an_odd_message_is_no_failure(item: Any) -> None:
    chat = chat_of(msgspec.json.encode({"messages": [item, {"role": "user", "content": "Hi"}]}))
    assert chat is not None
    assert chat.messages[-1] == {"role": "user", "content": "Hi"}
