"""The Responses dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, ConfigError, Delta, HttpRequest, Media, Message, Turn
from aiperf_endpoint_responses import Responses
from aiperf_endpoint_responses.contract import ResponsesContract


def sent(turn: Turn) -> Any:
    return msgspec.json.decode(Responses().encode(turn).body)


def user(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [*parts]}


def text(words: str, kind: str = "input_text") -> dict[str, str]:
    return {"type": kind, "text": words}


SYSTEM = Message("system", ("Be terse.",))


# Out


def test_the_body_is_exactly_this() -> None:
    request = Responses().encode(Turn(texts=("Hi",), model="m1", stream=True, max_tokens=16, history=(SYSTEM,)))
    assert request.body == (
        b'{"model":"m1","stream":true,"instructions":"Be terse.","input":[{"type":"message","role":"user","content":'
        b'[{"type":"input_text","text":"Hi"}]}],"max_output_tokens":16}'
    )
    assert (request.path, request.method, request.content_type) == ("/v1/responses", "POST", "application/json")


def test_without_a_stream_the_body_says_so() -> None:
    assert sent(Turn(texts=("Hi",), model="m")) == {"model": "m", "stream": False, "input": [user(text("Hi"))]}


@pytest.mark.parametrize(("extra", "counts", "options"), [
    ({}, False, None),
    ({}, True, {"include_usage": True}),
    ({"stream_options": {"include_obfuscation": False}}, True, {"include_usage": True, "include_obfuscation": False}),
    ({"stream_options": None}, True, None),
])  # fmt: skip
def test_usage_is_asked_for_where_it_counts(extra: dict[str, Any], counts: bool, options: Any) -> None:
    turn = Turn(texts=("Hi",), model="m", stream=True, extra=extra, server_counts=counts)
    assert sent(turn).get("stream_options") == options
    assert "stream_options" not in sent(msgspec.structs.replace(turn, stream=False, extra={}))


def test_media_are_parts_in_a_fixed_order() -> None:
    media = (Media("audio", "wav,QUJD"), Media("image", "data:image/png;base64,iVBO"))
    assert sent(Turn(texts=("see", "", "this"), media=media, model="m"))["input"] == [user(
        text("see"), text("this"), {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
    )]  # fmt: skip
    assert sent(Turn(model="m"))["input"] == [user(text(""))]


@pytest.mark.parametrize("media", [Media("video", "v.mp4"), Media("audio", "http://host/a.wav")])
def test_media_that_cannot_be_said_are_refused(media: Media) -> None:
    with pytest.raises(BadDataset, match=r"responses can't send video|is not inline"):
        sent(Turn(texts=("Hi",), media=(media,), model="m"))


def test_system_messages_of_the_run_and_of_the_data_are_the_instructions() -> None:
    history = (SYSTEM, Message("system", ("Data.",)), Message("user", ("Context.",)))
    body = sent(Turn(texts=("Hi",), model="m", history=history))
    assert body["instructions"] == "Be terse.\n\nData."
    assert body["input"] == [user(text("Context.")), user(text("Hi"))]


def test_instructions_of_a_row_are_sent_as_given() -> None:
    parts = [text("Be terse.")]
    assert sent(Turn(texts=("Hi",), model="m", extra={"instructions": parts}))["instructions"] == parts


def test_authored_answers_are_output_text() -> None:
    body = sent(Turn(texts=("And?",), model="m", history=(Message("user", ("Hi",)), Message("assistant", ("Hello",)))))
    assert body["input"][1] == {"type": "message", "role": "assistant", "content": [text("Hello", "output_text")]}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"at":"Lucca"}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "18"}
TOOL = {"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"}}


def test_items_and_tools_are_sent_as_they_are() -> None:
    turn = Turn(model="m", items=(Message.of(RESULT),), tools=(TOOL,), history=(Message("user", ("Hi",)), Message.of(CALL)))
    body = sent(turn)
    assert body["input"] == [user(text("Hi")), CALL, RESULT]
    assert body["tools"] == [TOOL]


STORED = Turn(
    texts=("And?",), model="m", server_counts=True, extra={"store": True},
    history=(SYSTEM, Message("user", ("Hi",)), Message("assistant", ("Hello",)), Message.of(RESULT)),
    before=(Message.of(RESULT),), state={"previous_response_id": "resp_1"},
)  # fmt: skip


def test_with_store_a_turn_sends_its_own_messages_and_the_id_before() -> None:
    body = sent(STORED)
    assert body["previous_response_id"] == "resp_1"
    assert body["instructions"] == "Be terse."  # the server forgets those of the answer before
    assert body["input"] == [RESULT, user(text("And?"))]


@pytest.mark.parametrize("changes", [{"state": {}}, {"extra": {}}, {"extra": {"store": False}}])
def test_without_store_or_id_the_history_is_sent(changes: dict[str, Any]) -> None:
    body = sent(msgspec.structs.replace(STORED, **changes))
    assert "previous_response_id" not in body
    assert len(body["input"]) == 4


@pytest.mark.parametrize(("changes", "match"), [
    ({"server_counts": False}, "add --use-server-token-count|can't be counted here"),
    ({"extra": {"background": True}}, "polled"),
])  # fmt: skip
def test_what_could_not_be_measured_is_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        sent(msgspec.structs.replace(STORED, **changes))


@pytest.mark.parametrize(("body", "texts"), [
    ({"instructions": "Be", "input": [user(text("a"))]}, ["Be", "a"]),
    ({"instructions": [text("Be")], "input": [user(text("a"), {"type": "input_image", "image_url": "u"})]}, ["Be", "a"]),
    ({"input": [CALL, RESULT]}, ["weather", '{"at":"Lucca"}', "18"]),
    ({"input": [{"type": "custom_tool_call", "name": "n", "input": "i"}, {"type": "custom_tool_call_output", "output": "o"}]},
     ["n", "i", "o"]),
    ({"input": [user(text("a"))], "tools": [TOOL]}, ["a", "weather", "d", '{"type":"object"}']),
    ({"input": "hello"}, ["hello"]),
    ({"input": ["a", "b"]}, ["a", "b"]),
])  # fmt: skip
def test_the_prompt_is_what_the_body_says(body: Any, texts: list[str]) -> None:
    counted = Responses().prompt_of(HttpRequest("/", msgspec.json.encode(body)))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (texts, [])


# Back


def read(*events: Any) -> tuple[list[Delta | None], Any]:
    """The Deltas of one answer, and its reader."""
    reader = Responses().reader()
    data = [event if isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
    return [*reader.feed(data, [None] * len(data))], reader


def said(*events: Any) -> tuple[str, str, str]:
    deltas = [delta for delta in read(*events)[0] if delta is not None]
    return "".join(d.text for d in deltas), "".join(d.reasoning for d in deltas), "".join(d.tool for d in deltas)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "item_id": "i1", "output_index": 0, **fields}


MESSAGE = {"type": "message", "id": "i1", "role": "assistant", "content": [text("Hi", "output_text")]}
REASONING = {
    "type": "reasoning",
    "id": "r1",
    "summary": [text("sum ", "summary_text")],
    "content": [text("hm", "reasoning_text")],
}
TELLING = {
    "text": (event("output_text.delta", content_index=0, delta="Hi"), ("Hi", "", "")),
    "refusal": (event("refusal.delta", content_index=0, delta="No"), ("No", "", "")),
    "reasoning": (event("reasoning_text.delta", content_index=0, delta="hm"), ("", "hm", "")),
    "summary": (event("reasoning_summary_text.delta", summary_index=0, delta="hm"), ("", "hm", "")),
    "arguments": (event("function_call_arguments.delta", delta='{"a"'), ("", "", '{"a"')),
    "custom": (event("custom_tool_call_input.delta", delta="x"), ("", "", "x")),
    "mcp": (event("mcp_call_arguments.delta", delta="x"), ("", "", "x")),
    "code": (event("code_interpreter_call_code.delta", delta="x"), ("", "", "x")),
    "text done": (event("output_text.done", content_index=0, text="Hi"), ("Hi", "", "")),
    "refusal done": (event("refusal.done", content_index=0, refusal="No"), ("No", "", "")),
    "summary done": (event("reasoning_summary_text.done", summary_index=0, text="hm"), ("", "hm", "")),
    "arguments done": (event("function_call_arguments.done", arguments="{}", name="f"), ("", "", "{}")),
    "custom done": (event("custom_tool_call_input.done", input="x"), ("", "", "x")),
    "code done": (event("code_interpreter_call_code.done", code="x"), ("", "", "x")),
    "item done": (event("output_item.done", item=MESSAGE), ("Hi", "", "")),
    "reasoning item": (event("output_item.done", item=REASONING), ("", "sum hm", "")),
    "call item": (event("output_item.done", item=CALL), ("", "", 'weather{"at":"Lucca"}')),
    "completed alone": ({"type": "response.completed", "response": {"id": "x", "output": [REASONING, MESSAGE, CALL]}},
                        ("Hi", "sum hm", 'weather{"at":"Lucca"}')),
    "created": ({"type": "response.created", "response": {"id": "x", "output": [MESSAGE]}}, ("", "", "")),
    "annotation": (event("output_text.annotation.added", annotation={}), ("", "", "")),
    "image": (event("image_generation_call.partial_image", partial_image_b64="AA"), ("", "", "")),
}  # fmt: skip


@pytest.mark.parametrize(("event", "words"), TELLING.values(), ids=TELLING.keys())
def test_an_event_means(event: Any, words: tuple[str, str, str]) -> None:
    assert said(event) == words
    assert said(event, b"[DONE]") == words


@pytest.mark.parametrize("fields", [{"output_index": 0, "content_index": 0}, {"output_index": None}], ids=["all", "item alone"])
def test_a_text_counts_once_however_often_it_is_told(fields: dict[str, Any]) -> None:
    events = [
        event("output_text.delta", **fields, delta="H"), event("output_text.delta", **fields, delta="i"),
        event("output_text.done", **fields, text="Hi"), event("output_item.done", **fields, item=MESSAGE),
        {"type": "response.completed", "response": {"id": "x", "status": "completed", "output": [MESSAGE]}},
    ]  # fmt: skip
    assert said(*events) == said(*events[2:]) == said(*events[3:]) == said(*events[4:]) == ("Hi", "", "")


def test_a_second_part_of_an_item_counts_by_its_done_event() -> None:
    events = [event("output_text.delta", content_index=0, delta="H"), event("output_text.done", content_index=0, text="H"),
              event("output_text.done", content_index=1, text="i"), event("output_item.done", item=MESSAGE)]  # fmt: skip
    assert said(*events) == ("Hi", "", "")


@pytest.mark.parametrize(("status", "details", "finish", "state"), [
    ("completed", None, "completed", {"previous_response_id": "x"}),
    ("incomplete", {"reason": "max_output_tokens"}, "max_output_tokens", {}),
    ("incomplete", {"reason": "content_filter"}, "content_filter", {}),
    (None, None, None, {"previous_response_id": "x"}),
])  # fmt: skip
@pytest.mark.parametrize("whole", [True, False])
def test_the_end_tells_usage_finish_and_id(status: Any, details: Any, finish: Any, state: Any, whole: bool) -> None:
    response = {"id": "x", "object": "response", "status": status, "incomplete_details": details, "usage": {"input_tokens": 3}}
    name = "response.incomplete" if status == "incomplete" else "response.completed"
    deltas, reader = read(response if whole else {"type": name, "response": response})
    assert deltas == [Delta(usage={"input_tokens": 3}, finish=finish)]
    assert reader.state() == state


END = {"type": "response.completed", "response": {"id": "x", "object": "response", "status": "completed"}}


@pytest.mark.parametrize("events", [
    [event("refusal.delta", content_index=0, delta="No"), END], [event("refusal.done", content_index=0, refusal="No"), END],
    [{**END["response"], "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No"}]}]}],
])  # fmt: skip
def test_a_refusal_is_told_with_the_end(events: list[dict[str, Any]]) -> None:
    *_, last = read(*events)[0]
    assert last is not None and last.extra == {"refused": 1.0}
    assert [delta.extra for delta in read(event("output_text.delta", delta="Hi"), END)[0]] == [None, None]


def test_a_whole_response_counts_every_item() -> None:
    other = {"type": "custom_tool_call", "id": "t", "name": "n", "input": "i"}
    refused = {"type": "message", "id": "m2", "content": [{"type": "refusal", "refusal": " No"}]}
    response = {"object": "response", "id": "x", "output": [REASONING, MESSAGE, refused, CALL, other]}
    assert said(response) == ("Hi No", "sum hm", 'weather{"at":"Lucca"}ni')
    assert said({"object": "response", "output": [], "output_text": "Hi"}) == ("Hi", "", "")


def test_the_next_turn_repeats_items_but_not_what_the_server_did_itself() -> None:
    done = [event("output_item.done", item=item) for item in (REASONING, {"type": "web_search_call", "id": "w"}, CALL)]
    _, reader = read(*done, {"type": "response.completed", "response": {"output": [{**CALL, "status": "completed"}, MESSAGE]}})
    assert [message.item for message in reader.replay()] == [{**CALL, "status": "completed"}, MESSAGE]
    assert read(event("output_text.delta", delta="Hi"))[1].replay() is None


FAILURES = {
    "failed": ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}}},
               ("x", None, "server_error")),
    "error event": ({"type": "error", "code": "rate_limit", "message": "x", "param": None}, ("x", None, "rate_limit")),
    "nested": ({"type": "error", "error": {"type": "t", "code": 503, "message": "x"}}, ("x", 503, "t")),
    "response.error": ({"type": "response.error", "code": "500", "message": "x"}, ("x", 500, None)),
    "whole": ({"object": "response", "status": "failed", "error": {"code": "c", "message": "x"}}, ("x", None, "c")),
    "wordless": ({"type": "response.failed", "response": {"status": "failed"}},
                 ("the response failed, and the server says no more", None, None)),
    "of another api": ({"error": {"message": "x", "type": "t", "code": 500}}, ("x", 500, "t")),
}  # fmt: skip


@pytest.mark.parametrize(("event", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_is_told_in_the_servers_words(event: Any, words: tuple[str, int | None, str | None]) -> None:
    with pytest.raises(BadResponse) as caught:
        read({"type": "response.created"}, event)
    assert (str(caught.value), caught.value.code, caught.value.kind) == words
    assert caught.value.raw == msgspec.json.encode(event)


@pytest.mark.parametrize("event", [
    b'{"type":"response.completed"}', b'{"type":"response.completed","response":7}',
    b'{"type":"response.output_item.done"}', b"[]",
])  # fmt: skip
def test_a_broken_event_is_a_bad_response_with_its_bytes(event: bytes) -> None:
    with pytest.raises(BadResponse, match=r"^responses: not ") as caught:
        read(event)
    assert caught.value.raw == event


class TestResponsesKeepsTheContract(ResponsesContract):
    pass
