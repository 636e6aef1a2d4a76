"""The Messages dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, Delta, HttpRequest, Media, Message, Turn
from aiperf.sdk.model import HIDDEN
from aiperf_endpoint_messages import Messages
from aiperf_endpoint_messages.contract import MessagesContract


def sent(turn: Turn) -> Any:
    return msgspec.json.decode(Messages().encode(turn).body)


SYSTEM = Message("system", ("Be terse.",))


# Out


def test_the_body_is_exactly_this() -> None:
    request = Messages().encode(Turn(texts=("Hi",), model="m1", max_tokens=64, history=(SYSTEM,)))
    assert request.body == (b'{"model":"m1","max_tokens":64,"system":"Be terse.","messages":[{"role":"user","content":"Hi"}]}')
    assert (request.path, request.method) == ("/v1/messages", "POST")
    assert request.headers == {"anthropic-version": "2023-06-01"}
    assert Messages().auth_headers("k") == {"x-api-key": "k"}


def test_a_stream_is_asked_for_and_a_length_always() -> None:
    turn = Turn(texts=("Hi",), model="m", stream=True, extra={"top_k": 1})
    assert sent(turn) == {
        "model": "m", "max_tokens": 1024, "messages": [{"role": "user", "content": "Hi"}], "stream": True, "top_k": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("history", "row", "system"), [
    ((SYSTEM, Message("system", ("Data.",))), {}, "Be terse.\n\nData."),
    ((SYSTEM, Message.of({"role": "system", "content": "Data."})), {}, "Be terse.\n\nData."),
    ((SYSTEM,), {"system": "Data."}, "Be terse.\n\nData."),
    ((), {"system": "Data."}, "Data."),
    ((SYSTEM,), {"system": [{"type": "text", "text": "Data.", "cache_control": {"type": "ephemeral"}}]},
     [{"type": "text", "text": "Be terse."}, {"type": "text", "text": "Data.", "cache_control": {"type": "ephemeral"}}]),
])  # fmt: skip
def test_the_system_of_run_and_row_become_one(history: Any, row: dict[str, Any], system: Any) -> None:
    body = sent(Turn(texts=("Hi",), model="m", history=history, extra=row, row_extra=row))
    assert body["system"] == system
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


def test_images_are_blocks_behind_the_texts() -> None:
    media = (Media("image", "data:image/png;base64,iVBO"), Media("image", "https://host/i.png"))
    assert sent(Turn(texts=("see", ""), media=media, model="m"))["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/i.png"}},
    ]


@pytest.mark.parametrize("kind", ["audio", "video"])
def test_other_media_are_refused(kind: str) -> None:
    with pytest.raises(BadDataset, match=f"messages can't send {kind}"):
        sent(Turn(texts=("Hi",), media=(Media(kind, "x"),), model="m"))


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"at": "Lucca"}}]}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "18"}]}],
}
TOOL = {"name": "weather", "description": "d", "input_schema": {"type": "object"}}


def test_tools_and_verbatim_messages_are_sent_as_they_are() -> None:
    turn = Turn(model="m", items=(Message.of(RESULT),), tools=(TOOL,), history=(Message("user", ("Hi",)), Message.of(USE)))
    body = sent(turn)
    assert body["messages"] == [{"role": "user", "content": "Hi"}, USE, RESULT]
    assert body["tools"] == [TOOL]


@pytest.mark.parametrize(("body", "texts"), [
    ({"system": "Be", "messages": [{"role": "user", "content": "a"}]}, ["Be", "a"]),
    ({"system": [{"type": "text", "text": "Be"}], "messages": [USE, RESULT]}, ["Be", "weather", '{"at":"Lucca"}', "18"]),
    ({"messages": [{"content": [{"type": "tool_result", "content": "18"}]}], "tools": [TOOL]},
     ["18", "weather", "d", '{"type":"object"}']),
    ({"messages": [{"content": [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking", "data": "x"},
                                {"type": "image", "source": {}}, {"type": "text", "text": "a"}]}]}, ["hm", "a"]),
])  # fmt: skip
def test_the_prompt_is_what_the_body_says(body: Any, texts: list[str]) -> None:
    counted = Messages().prompt_of(HttpRequest("/", msgspec.json.encode(body)))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (texts, [])


# Back


def read(*events: Any) -> tuple[list[Delta | None], Any]:
    """The Deltas of one answer, and its reader."""
    reader = Messages().reader()
    data = [event if isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
    return [*reader.feed(data, [None] * len(data))], reader


def start(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def more(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


SEARCH = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "title": "T"}]}
TELLING = {
    "text": (more(0, "text_delta", text="Hi"), Delta("Hi")),
    "thinking": (more(0, "thinking_delta", thinking="hm"), Delta("", "hm")),
    "json": (more(0, "input_json_delta", partial_json='{"a"'), Delta("", "", '{"a"')),
    "signature": (more(0, "signature_delta", signature="s"), None),
    "citation": (more(0, "citations_delta", citation={}), None),
    "text begins": (start(0, "text", text="Hi"), Delta("Hi")),
    "empty text begins": (start(0, "text", text=""), None),
    "tool": (start(0, "tool_use", id="t", name="weather", input={}), Delta("", "", "weather")),
    "server's tool": (start(0, "server_tool_use", id="t", name="web", input={"q": 1}), Delta("", "", 'web{"q":1}')),
    "redacted": (start(0, "redacted_thinking", data="x"), Delta("", HIDDEN)),
    "result": ({"type": "content_block_start", "index": 0, "content_block": SEARCH}, None),
    "start": ({"type": "message_start", "message": {"usage": {"input_tokens": 3}}}, Delta(usage={"input_tokens": 3})),
    "end": ({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 3}},
            Delta(usage={"output_tokens": 3}, finish="pause_turn")),
}  # fmt: skip


@pytest.mark.parametrize(("event", "delta"), TELLING.values(), ids=TELLING.keys())
def test_an_event_means(event: Any, delta: Delta | None) -> None:
    assert read(event)[0] == [delta]
    assert read(event, {"type": "ping"}, b"[DONE]")[0] == [delta, None, None]


def test_a_whole_message_counts_every_block() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi"}, USE["content"][0], SEARCH,
    ]  # fmt: skip
    deltas, reader = read({"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 1}})
    assert deltas == [Delta("Hi", f"hm{HIDDEN}", 'weather{"at":"Lucca"}', {"input_tokens": 1}, "tool_use")]
    assert [message.item for message in reader.replay()] == [{"role": "assistant", "content": content}]


def test_the_next_turn_repeats_the_blocks_in_order() -> None:
    _, reader = read(
        start(0, "thinking", thinking="", signature=""), more(0, "thinking_delta", thinking="h"),
        more(0, "thinking_delta", thinking="m"), more(0, "signature_delta", signature="c2ln"),
        start(1, "redacted_thinking", data="x"), start(2, "text", text=""), more(2, "text_delta", text="Hi"),
        start(3, "tool_use", id="t1", name="weather", input={}), more(3, "input_json_delta", partial_json='{"at":'),
        more(3, "input_json_delta", partial_json='"Lucca"}'), start(4, "text", text=""),
    )  # fmt: skip
    assert [message.item for message in reader.replay()] == [{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi"}, USE["content"][0],
    ]}]  # fmt: skip


def test_an_answer_of_one_text_is_repeated_as_text() -> None:
    assert read(start(0, "text", text=""), more(0, "text_delta", text="Hi"))[1].replay() is None


def test_a_tool_whose_input_was_cut_is_repeated_without_it() -> None:
    _, reader = read(start(0, "tool_use", id="t1", name="w", input={}), more(0, "input_json_delta", partial_json='{"at":"Lu'))
    assert reader.replay()[0].item["content"] == [{"type": "tool_use", "id": "t1", "name": "w", "input": {}}]


@pytest.mark.parametrize(("event", "words"), [
    ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, ("busy", "overloaded_error")),
    ({"type": "error"}, ("messages: an error without words", None)),
    ({"error": {"message": "no such model", "type": "NotFoundError"}}, ("no such model", "NotFoundError")),
])  # fmt: skip
def test_an_error_event_fails_the_request_in_the_servers_words(event: Any, words: tuple[str, str | None]) -> None:
    with pytest.raises(BadResponse) as caught:
        read({"type": "ping"}, event)
    assert (str(caught.value), caught.value.kind) == words
    assert caught.value.raw == msgspec.json.encode(event)


class TestMessagesKeepsTheContract(MessagesContract):
    pass
