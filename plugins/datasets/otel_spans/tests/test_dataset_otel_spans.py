"""Spans as requests: forms of files, attributes and messages, sessions and times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_otel_spans.contract import OtelSpansContract, export, span
from aiperf_dataset_otel_spans.dataset import OtelSpans
from aiperf_dataset_otel_spans.messages import older_messages
from aiperf_dataset_otel_spans.options import OtelSpansOptions

CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True, media_in=("image",))
PLAIN = Capabilities(produces_tokens=True, tokenizes_input=True)
VECTORS = Capabilities(tokenizes_input=True)


def read(
    path: Path, *values: Any, can: Capabilities = CHAT, replay: bool = False, name: str = "s.jsonl", **given: Any
) -> list[Conversation]:
    text = values[0] if values and isinstance(values[0], str) else "".join(json.dumps(value) + "\n" for value in values)
    (path / name).write_text(text)
    context = DatasetContext(100, 7, True, None, can, path / name, replay=replay)
    return list(OtelSpans(OtelSpansOptions(**given), context))


def sent(one: Conversation, turn: int = 0) -> list[dict[str, Any]]:
    return [message.item or {} for message in one.turns[turn].own]


def parts(*given: dict[str, Any], role: str = "user") -> list[dict[str, Any]]:
    return [{"role": role, "parts": list(given)}]


class TestOtelSpansKeepsTheContract(OtelSpansContract):
    pass


def test_every_form_of_a_file_gives_the_same_requests(tmp_path: Path) -> None:
    one, two = span(0, "a"), span(5, "b", length=2)
    plain = {
        "trace_id": "x", "start_time": "2023-11-14T22:13:20Z", "end_time": "2023-11-14T22:13:21Z",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s",
                       "gen_ai.input.messages": parts({"type": "text", "content": "a"})},
    }  # fmt: skip
    expected = read(tmp_path, export(one, two))
    assert [turn.text for turn in expected[0].turns] == ["a", "b"]
    for values in ((two, one), (export(two), one), (plain, two), (json.dumps(export(one, two), indent=1),),
                   (json.dumps([one, two], indent=1),)):  # fmt: skip
        assert read(tmp_path, *values) == expected


def test_a_later_span_waits_as_it_did(tmp_path: Path) -> None:
    (one,) = read(tmp_path, span(7.5, "c"), span(0, "a"), span(3, "b", length=5))
    assert [(turn.text, turn.delay_ms, turn.timestamp_ms) for turn in one.turns] == [
        ("a", None, None), ("b", 2000.0, None), ("c", 0.0, None)
    ]  # fmt: skip
    assert one.alone


def test_on_a_schedule_each_span_is_by_itself(tmp_path: Path) -> None:
    found = read(tmp_path, span(9, "c", session="t"), span(3, "b"), span(2, "a"), replay=True)
    assert [(one.id, one.turns[0].text, one.turns[0].timestamp_ms) for one in found] == [
        ("s:0", "a", 0.0), ("s:1", "b", 1000.0), ("t:0", "c", 7000.0)
    ]  # fmt: skip


def test_sessions_are_conversations_else_traces(tmp_path: Path) -> None:
    found = read(tmp_path, span(0), span(1, session="t"), span(2, conversation__id=None))
    assert [one.id for one in found] == ["s", "t", "0af7651916cd43dd8448eb211c80319c"]


def test_fields_of_the_request_are_those_of_the_span(tmp_path: Path) -> None:
    (one,) = read(tmp_path, span(
        0, request__max_tokens=9, usage__output_tokens=5, request__temperature=0.5, request__seed=3,
        system_instructions=[{"type": "text", "content": "Be terse."}],
        tool__definitions=[{"type": "function", "name": "f", "parameters": {}}, {"type": "web"}],
    ))  # fmt: skip
    turn = one.turns[0]
    assert (turn.max_tokens, turn.extra) == (9, {"temperature": 0.5, "seed": 3})
    assert turn.tools == ({"type": "function", "function": {"name": "f", "parameters": {}}},)
    assert sent(one) == [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "hi"}]
    assert read(tmp_path, span(0, usage__output_tokens=5))[0].turns[0].max_tokens == 5
    assert read(tmp_path, span(0, usage__output_tokens=0))[0].turns[0].max_tokens is None
    stop = span(0)
    stop["attributes"].append(
        {"key": "gen_ai.request.stop_sequences", "value": {"arrayValue": {"values": [{"stringValue": "END"}]}}}
    )
    assert read(tmp_path, stop)[0].turns[0].extra == {"stop": ["END"]}


def test_parts_become_messages_in_the_chat_form(tmp_path: Path) -> None:
    messages = [
        *parts({"type": "text", "content": "look"}, {"type": "blob", "mime_type": "image/png", "content": "iVBO"}),
        *parts({"type": "thinking", "thinking": "hm"}, {"type": "text", "content": "ok"},
               {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"x": 1}}, role="assistant"),
        *parts({"type": "tool_call_response", "id": "c1", "result": {"y": 2}}, {"type": "text", "content": "then"},
               role="tool"),
        {"role": "developer", "parts": [{"type": "text", "content": "d"}]}, {"role": "user", "content": "plain"},
    ]  # fmt: skip
    (one,) = read(tmp_path, span(0, input__messages=messages))
    assert sent(one) == [
        {"role": "user", "content": [{"type": "text", "text": "look"},
                                     {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
        {"role": "assistant", "content": "ok", "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"y":2}'}, {"role": "tool", "content": "then"},
        {"role": "system", "content": "d"}, {"role": "user", "content": "plain"},
    ]  # fmt: skip


@pytest.mark.parametrize(("attributes", "events", "expected"), [
    ({"gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "b", "gen_ai.prompt.0.role": "system",
      "gen_ai.prompt.0.content": "a"}, [], [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]),
    ({}, [{"name": "gen_ai.user.message", "attributes": {"content": "q"}}, {"name": "other"},
          {"name": "gen_ai.tool.message", "attributes": {"content": "r", "id": "c"}}],
     [{"role": "user", "content": "q"}, {"role": "tool", "content": "r", "tool_call_id": "c"}]),
    ({}, [{"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": '[{"role": "user", "content": "q"}]'}}],
     [{"role": "user", "content": "q"}]),
    ({}, [{"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": "just text"}}],
     [{"role": "user", "content": "just text"}]),
])  # fmt: skip
def test_earlier_conventions_are_read(tmp_path: Path, attributes: Any, events: Any, expected: Any) -> None:
    one = span(0, input__messages=None)
    one["attributes"] = {"gen_ai.operation.name": "chat", **attributes}
    assert sent(read(tmp_path, one | {"events": events})[0]) == expected


def test_what_is_not_sent_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    file = {"type": "file", "file_id": "f", "modality": "image"}
    failed = span(0) | {"status": {"code": 2}}
    found = read(
        tmp_path, span(0, request__model="big", input__messages=parts({"type": "text", "content": "a"}, file)), failed,
        span(1, operation__name="embeddings"), span(0.5, input__messages=None), span(0.6, usage__input_tokens=1200),
        span(3, operation__name="execute_tool"),
    )  # fmt: skip
    assert [len(one.turns) for one in found] == [2]
    assert "2 requests of 1 sessions, recorded of an unknown model and big; 1 overlap; 1,200 recorded input" in caplog.text
    assert "skipped: 1 failed, 2 of other operations and 1 without messages" in caplog.text
    assert "skipped: parts of messages 1 file" in caplog.text


def test_embeddings_are_for_an_endpoint_of_embeddings(tmp_path: Path) -> None:
    (one,) = read(tmp_path, span(0, "vector", operation__name="embeddings"), span(1), can=VECTORS)
    assert [turn.texts for turn in one.turns] == [("vector",)]


def test_an_endpoint_without_a_history_gets_single_texts(tmp_path: Path) -> None:
    (one,) = read(tmp_path, span(0, "once upon", operation__name="text_completion"), can=PLAIN)
    assert (one.turns[0].texts, one.turns[0].items) == (("once upon",), None)
    with pytest.raises(BadDataset, match="sends no history"):
        read(tmp_path, span(0, system_instructions="Be terse."), can=PLAIN)


def test_strange_attributes_that_no_request_needs_are_left_alone(tmp_path: Path) -> None:
    one = span(0, "a", usage__input_tokens="12")
    one["attributes"] = [*one["attributes"], {"key": "gen_ai.prompt.².role", "value": {"stringValue": "user"}}]
    assert [turn.text for turn in read(tmp_path, one)[0].turns] == ["a"]
    assert older_messages({"gen_ai.prompt.².role": "user", "gen_ai.prompt.0.content": "q"}, []) == [
        {"role": "user", "content": "q"}
    ]


@pytest.mark.parametrize(("value", "words"), [
    ("{}\n", ":1: span without id: it has neither gen_ai.conversation.id nor traceId"),
    ({"traceId": "t", "spanId": "b7"}, ":1: span b7: start_time is None"),
    (span(0) | {"startTimeUnixNano": "soon"}, "startTimeUnixNano is 'soon'; it must be a number of ns"),
    (span(0, length=-1), "it ends before it starts"), (span(0) | {"attributes": 5}, "neither a list nor an object"),
    (span(0, input__messages="[oops"), "gen_ai.input.messages is no JSON"),
    (span(0, input__messages=[{"role": "user"}]), "the parts of a message must be a list of objects"),
    (span(0, request__max_tokens=-3), "gen_ai.request.max_tokens is -3"),
    (span(0, request__temperature="hot"), "gen_ai.request.temperature is 'hot'"),
    (span(0, tool__definitions="5"), "tools must be a list of objects"),
    ('{"resourceSpans": [', "s.jsonl: no JSON"), (export(), "has no span that can be sent"), ("[5]", "int is no span"),
    (span(0, input__messages=None), "has no span that can be sent; skipped: 1 without messages"),
    ({"resourceSpans": 5}, ":1: resourceSpans is int; it must be a list"),
    ({"resourceSpans": [{"scopeSpans": "x"}]}, ":1: scopeSpans is str; it must be a list"),
    (span(0) | {"events": 7}, ":1: events is int; it must be a list"),
    (span(0) | {"startTimeUnixNano": "9" * 400}, "it must be a number of ns"),
])  # fmt: skip
def test_what_is_no_recording_is_refused_with_its_place(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, value)
    assert words in caught.value.message
    assert not words.endswith("messages") or "CAPTURE_MESSAGE_CONTENT" in caught.value.hints[0]


def test_a_system_prompt_of_the_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="the system prompt can't come before them"):
        read(tmp_path, span(0), system_prompt="Be terse.")
