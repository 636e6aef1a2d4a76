"""The chat dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, ConfigError, Delta, HttpRequest, Media, Message, Turn
from aiperf_endpoint_chat import Chat
from aiperf_endpoint_chat.contract import USAGE, ChatContract, chunk
from aiperf_endpoint_chat.options import ChatOptions


def sent(turn: Turn, chat: Chat | None = None) -> Any:
    return msgspec.json.decode((chat or Chat()).encode(turn).body)


def content(*texts: str, media: tuple[Media, ...] = ()) -> Any:
    return sent(Turn(texts=texts, media=media, model="m"))["messages"][0]["content"]


# Out


def test_the_body_is_exactly_this() -> None:
    turn = Turn(texts=("What is shown?",), model="m1", stream=True, max_tokens=40, extra={"temperature": 0})
    request = Chat().encode(turn)
    assert request.body == (
        b'{"messages":[{"role":"user","content":"What is shown?"}],"model":"m1","stream":true,'
        b'"max_completion_tokens":40,"temperature":0,"stream_options":{"include_usage":true}}'
    )
    assert (request.path, request.method, request.content_type) == ("/v1/chat/completions", "POST", "application/json")


def test_without_streaming_no_usage_is_requested() -> None:
    assert sent(Turn(texts=("Hi",), model="m")) == {
        "messages": [{"role": "user", "content": "Hi"}],
        "model": "m",
        "stream": False,
    }


def test_the_legacy_option_renames_the_length() -> None:
    legacy = Chat(ChatOptions(use_legacy_max_tokens=True))
    body = sent(Turn(texts=("Hi",), model="m", max_tokens=7), legacy)
    assert body["max_tokens"] == 7 and "max_completion_tokens" not in body
    modern = Chat(ChatOptions())
    assert sent(Turn(texts=("Hi",), model="m", max_tokens=7), modern)["max_completion_tokens"] == 7


def test_extras_overwrite_the_top_level_and_bring_tools() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = sent(
        Turn(texts=("Hi",), model="m", max_tokens=7, extra={"model": "other", "max_completion_tokens": 9, "tools": tools})
    )
    assert (body["model"], body["max_completion_tokens"], body["tools"]) == ("other", 9, tools)


TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"x":1}'}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "18"}


def test_tools_and_verbatim_messages_are_sent_as_they_are() -> None:
    turn = Turn(model="m", items=(Message.of(RESULT),), tools=(TOOL,), history=(Message("user", ("Hi",)), Message.of(CALL)))
    body = sent(turn)
    assert body["messages"] == [{"role": "user", "content": "Hi"}, CALL, RESULT]
    assert body["tools"] == [TOOL]
    assert "tools" not in sent(Turn(texts=("Hi",), model="m", tools=()))


def test_an_empty_list_of_messages_adds_none() -> None:
    assert sent(Turn(("unused",), model="m", items=(), history=(Message("user", ("Hi",)),)))["messages"] == [
        {"role": "user", "content": "Hi"}
    ]


@pytest.mark.parametrize(("second", "messages"), [
    ({"role": "system", "content": "two"}, [{"role": "system", "content": "one\n\ntwo"}]),
    ({"role": "system", "content": "two", "name": "n"}, [{"role": "system", "content": "one"},
                                                        {"role": "system", "content": "two", "name": "n"}]),
])  # fmt: skip
def test_a_verbatim_system_message_joins_the_conversations_where_it_is_text_alone(second: Any, messages: Any) -> None:
    assert sent(Turn(model="m", items=(Message.of(second),), history=(Message("system", ("one",)),)))["messages"] == messages


def test_two_verbatim_system_messages_stay_two() -> None:
    items = [{"role": "system", "content": "one"}, {"role": "system", "content": "two"}]
    assert sent(Turn(model="m", items=tuple(map(Message.of, items))))["messages"] == items


@pytest.mark.parametrize(("body", "texts"), [
    ({"messages": [{"role": "user", "content": "a"}, CALL, RESULT]}, ["a", "f", '{"x":1}', "18"]),
    ({"messages": [{"content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]}]}, ["a"]),
    ({"messages": [], "tools": [TOOL]}, ["f", "d", '{"type":"object"}']),
    ({"messages": [], "tools": [{"name": "g", "parameters": {}}]}, ["g", "{}"]),
    ({"messages": ["odd", {"content": 7}], "tools": "odd"}, []),
    ({"prompt": "a"}, ["a"]),  # a payload of another API counts as what it says
    ([], None),
])  # fmt: skip
def test_the_prompt_is_what_the_body_says(body: Any, texts: list[str] | None) -> None:
    counted = Chat().prompt_of(HttpRequest("/", msgspec.json.encode(body)))
    assert (None if counted is None else [*counted.texts]) == texts


def test_a_body_that_is_no_json_has_no_prompt_of_its_own() -> None:
    assert Chat().prompt_of(HttpRequest("/", b"\xff{")) is None


@pytest.mark.parametrize(
    ("extra", "options"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": {"include_usage": False}}, {"include_usage": False}),
        ({"stream_options": {"continuous_usage_stats": True}}, {"include_usage": True, "continuous_usage_stats": True}),
        ({"stream_options": None}, None),
        ({"stream_options": "all"}, "all"),
    ],
)
def test_usage_is_asked_for_without_overwriting_the_author(extra: dict[str, Any], options: Any) -> None:
    turn = Turn(texts=("Hi",), model="m", stream=True, extra=extra)
    before = msgspec.json.encode(extra)
    assert sent(turn)["stream_options"] == options
    assert msgspec.json.encode(extra) == before  # the turn is frozen, and so is what hangs on it


@pytest.mark.parametrize(
    ("extra", "options"),
    [
        ({}, {"include_usage": True, "continuous_usage_stats": True}),
        ({"stream_options": {"continuous_usage_stats": False}}, {"include_usage": True, "continuous_usage_stats": False}),
    ],
)
def test_usage_can_be_asked_for_with_every_chunk(extra: dict[str, Any], options: Any) -> None:
    assert sent(Turn(texts=("Hi",), model="m", stream=True, per_chunk_usage=True, extra=extra))["stream_options"] == options


def test_an_extra_that_switches_streaming_decides_about_usage() -> None:
    assert "stream_options" not in sent(Turn(texts=("Hi",), model="m", stream=True, extra={"stream": False}))
    assert sent(Turn(texts=("Hi",), model="m", extra={"stream": True}))["stream_options"] == {"include_usage": True}


def test_a_single_text_is_a_string_and_none_is_empty() -> None:
    assert content("Hi") == "Hi"
    assert content("") == ""
    assert content() == ""


def test_several_texts_are_parts_without_the_empty_ones() -> None:
    assert content("a", "", "b") == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def test_media_follow_the_texts_in_a_fixed_order() -> None:
    media = (Media("video", "v.mp4"), Media("audio", "wav,QUJD"), Media("image", "i.png", uuid="u1"), Media("image", "j.png"))
    assert content("see", media=media) == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "i.png"}, "uuid": "u1"},
        {"type": "image_url", "image_url": {"url": "j.png"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "v.mp4"}},
    ]


def test_images_that_the_session_sent_before_are_uuids_alone() -> None:
    first, second, other = Media("image", "a.png", "u1"), Media("image", "c.png", "u2"), Media("image", "b.png")
    history = (Message("user", ("see",), (first, other)), Message("assistant", ("Yes",)))
    turn = Turn(("and",), (first, second, second, other), model="m", history=history)
    before, _, now = sent(turn, Chat(ChatOptions(uuid_and_strip=True)))["messages"]
    assert [part["image_url"]["url"] for part in before["content"][1:]] == ["", "b.png"]
    assert [(part["image_url"]["url"], part.get("uuid")) for part in now["content"][1:]] == [
        ("", "u1"), ("c.png", "u2"), ("", "u2"), ("b.png", None),
    ]  # fmt: skip
    assert sent(turn)["messages"][2]["content"][1] == {"type": "image_url", "image_url": {"url": "a.png"}, "uuid": "u1"}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("mp3,QUJD", "mp3"),
        ("data:audio/wav;base64,QUJD", "wav"),
        ("data:audio/mpeg;base64,QUJD", "mp3"),
        ("data:audio/x-wav;codecs=1;base64,QUJD", "wav"),
        ("data:audio/ogg,QUJD", "ogg"),
    ],
)
def test_audio_says_its_format(value: str, form: str) -> None:
    assert content(media=(Media("audio", value),))[0]["input_audio"] == {"data": "QUJD", "format": form}


@pytest.mark.parametrize("media", [Media("audio", "http://host/a.wav"), Media("audio", "http://h/a,b"), Media("scent", "x")])
def test_media_that_cannot_be_said_are_refused(media: Media) -> None:
    with pytest.raises(BadDataset, match=r"is not inline|no media of kind 'scent'"):
        content("Hi", media=(media,))


def test_history_stands_before_the_turn() -> None:
    history = (Message("system", ("Be terse.",)), Message("user", ("Hi",)), Message("assistant", ("Hello",)))
    messages = sent(Turn(texts=("And?",), model="m", history=history))["messages"]
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "Be terse."),
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "And?"),
    ]


def test_a_runs_system_message_joins_the_data_sets() -> None:
    history = (Message("system", ("Run.",)), Message("system", ("Data.",)))
    messages = sent(Turn(texts=("Hi",), model="m", history=history))["messages"]
    assert messages == [{"role": "system", "content": "Run.\n\nData."}, {"role": "user", "content": "Hi"}]


def test_parts_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_ENDPOINT_FORCE_CONTENT_PARTS", "1")
    assert content("Hi") == [{"type": "text", "text": "Hi"}]
    monkeypatch.setenv("AIPERF_ENDPOINT_FORCE_CONTENT_PARTS", "perhaps")
    with pytest.raises(ConfigError, match="'perhaps'"):
        Chat()


def test_text_of_all_scripts_travels_as_itself() -> None:
    assert "Grüße 你好 🦜".encode() in Chat().encode(Turn(texts=("Grüße 你好 🦜",), model="m")).body


# Back


EVENTS = {
    "text": (chunk('{"content":"Cat"}'), Delta(text="Cat")),
    "role only": (chunk('{"role":"assistant"}'), Delta()),
    "role and empty text": (chunk('{"role":"assistant","content":""}'), Delta()),
    "null text": (chunk('{"content":null}'), Delta()),
    "finish only": (chunk("{}", ',"finish_reason":"stop"'), Delta(finish="stop")),
    "no delta at all": (b'{"choices":[{"index":0,"finish_reason":"length"}]}', Delta(finish="length")),
    "reasoning_content": (chunk('{"reasoning_content":"hm"}'), Delta(reasoning="hm")),
    "reasoning": (chunk('{"reasoning":"hm"}'), Delta(reasoning="hm")),
    "both names of reasoning": (chunk('{"reasoning_content":"a","reasoning":"b"}'), Delta(reasoning="a")),
    "reasoning beside text": (chunk('{"reasoning":"hm","content":"Cat"}'), Delta(text="Cat", reasoning="hm")),
    "tool call": (
        chunk('{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{\\"a\\":"}}]}'),
        Delta(tool='get{"a":'),
    ),
    "tool arguments alone": (chunk('{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}'), Delta(tool="1}")),
    "two tool calls": (
        chunk('{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":null}}]}'),
        Delta(tool="f{}g"),
    ),
    "tool arguments as an object": (
        chunk('{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}'),
        Delta(tool='f{"a":1}'),
    ),
    "a tool call beside text": (
        chunk('{"content":"Wait.","tool_calls":[{"function":{"name":"f","arguments":""}}]}'),
        Delta(text="Wait.", tool="f"),
    ),
    "legacy function call": (chunk('{"function_call":{"name":"f","arguments":"{}"}}'), Delta(tool="f{}")),
    "text in parts": (chunk('{"content":[{"type":"text","text":"C"},{"type":"text","text":"at"}]}'), Delta(text="Cat")),
    "usage only": (
        b'{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        Delta(usage=USAGE),
    ),
    "usage beside text": (
        b'{"choices":[{"delta":{"content":"Cat"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        Delta(text="Cat", usage=USAGE),
    ),
    "usage is null": (b'{"choices":[{"delta":{"content":"Cat"}}],"usage":null}', Delta(text="Cat")),
    "a whole answer": (
        b'{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Cat"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        Delta(text="Cat", usage=USAGE, finish="stop"),
    ),
    "a whole answer of another object": (b'{"object":"x","choices":[{"message":{"content":"Cat"}}]}', Delta(text="Cat")),
    "a chunk without an object": (b'{"choices":[{"delta":{"content":"Cat"}}]}', Delta(text="Cat")),
    "delta null, message given": (b'{"choices":[{"delta":null,"message":{"content":"Cat"}}]}', Delta(text="Cat")),
    "several choices": (
        b'{"choices":[{"index":0,"message":{"content":"Cat"}},{"index":1,"message":{"content":"Dog","reasoning":"hm"},'
        b'"finish_reason":"stop"},{"index":2,"message":{"content":null,"function_call":{"name":"f","arguments":"{}"}}}]}',
        Delta(text="CatDog", reasoning="hm", tool="f{}", finish="stop"),
    ),
    "a second choice's chunk": (b'{"choices":[{"index":1,"delta":{"content":"Dog"}}]}', Delta(text="Dog")),
    "no choices, as a filter's first word": (b'{"choices":[],"prompt_filter_results":[]}', Delta()),
    "an error that is null": (b'{"choices":[{"delta":{"content":"Cat"}}],"error":null}', Delta(text="Cat")),
    "the end": (b"[DONE]", None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize(("event", "delta"), EVENTS.values(), ids=EVENTS.keys())
def test_an_event_means(event: bytes, delta: Delta | None) -> None:
    assert Chat().decode(event) == delta


ERRORS = {
    "an object": (
        b'{"error":{"message":"too long","type":"BadRequestError","code":400}}',
        ("too long", 400, "BadRequestError"),
    ),
    "a code in text": (b'{"error":{"message":"busy","code":"429"}}', ("busy", 429, None)),
    "a named code": (b'{"error":{"message":"busy","type":null,"code":"rate_limit"}}', ("busy", None, "rate_limit")),
    "beside choices": (b'{"choices":[{"delta":{}}],"error":{"message":"gone","code":502}}', ("gone", 502, None)),
    "a text": (b'{"error":"out of memory"}', ("out of memory", None, None)),
    "without a message": (b'{"error":{"code":500}}', ('{"code":500}', 500, None)),
    "by itself": (
        b'{"object":"error","message":"no such model","type":"NotFoundError","code":404}',
        ("no such model", 404, "NotFoundError"),
    ),
    "in a body that is otherwise foreign": (b'{"choices":3,"error":{"message":"x"}}', ("x", None, None)),
    "beside usage": (b'{"usage":{"prompt_tokens":1},"error":{"message":"x"}}', ("x", None, None)),
}


@pytest.mark.parametrize(("event", "said"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_in_band_is_the_servers_own(event: bytes, said: tuple[str, int | None, str | None]) -> None:
    with pytest.raises(BadResponse) as caught:
        Chat().decode(event)
    assert (str(caught.value), caught.value.code, caught.value.kind) == said
    assert caught.value.raw == event


@pytest.mark.parametrize(
    "event",
    [
        b"<html>502</html>",
        b'{"choices":[{"delta":{"content":"Ca',
        b"null",
        b"[]",
        b'{"choices":7}',
        b'{"choices":[{"delta":{"content":7}}]}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
        b"[" * 100_000,
    ],
    ids=["proxy page", "cut", "null", "list", "choices a number", "text a number", "not UTF-8", "deep"],
)
def test_other_dialects_are_bad_responses_with_their_bytes(event: bytes) -> None:
    with pytest.raises(BadResponse, match=r"^chat: not ") as caught:
        Chat().decode(event)
    assert caught.value.raw == event


def test_bodies_cut_at_different_places_are_one_kind_of_error() -> None:
    whole = chunk('{"content":"Cat"}')
    messages = set()
    for at in range(1, len(whole)):
        with pytest.raises(BadResponse) as caught:
            Chat().decode(whole[:at])
        messages.add(str(caught.value))
    assert messages == {"chat: not JSON"}


class TestChatKeepsTheContract(ChatContract):
    pass


# The answer in the next turn


def replayed(*events: Any) -> list[Message] | None:
    reader = Chat().reader()
    for event in events:
        reader.feed([msgspec.json.encode(event) if isinstance(event, dict) else event], [None])
    reader.close()
    messages = reader.replay()
    return None if messages is None else [*messages]


def piece(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def call(function: Any, **more: Any) -> dict[str, Any]:
    return piece(tool_calls=[{"function": function, **more}])


WEATHER = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"at":"Lucca"}'}}


@pytest.mark.parametrize(("events", "item"), [
    ([piece(role="assistant", content=None), call({"name": "weather", "arguments": ""}, index=0, id="c1", type="function"),
      call({"arguments": '{"at":'}, index=0), call({"arguments": '"Lucca"}'}, index=0), b"[DONE]"],
     {"content": None, "tool_calls": [WEATHER]}),
    ([piece(content="Let me "), piece(content="see."), call(WEATHER["function"], index=1, id="c1", type="function"),
      call({"name": "time", "arguments": "{}"}, index=0, id="c0", type="function")],
     {"content": "Let me see.", "tool_calls": [
         WEATHER, {"id": "c0", "type": "function", "function": {"name": "time", "arguments": "{}"}}]}),
    ([call({"name": "a", "arguments": {"x": 1}}, id="1"), call({"name": "b"}, id="2", extra={"signature": "s"})],
     {"content": None, "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": '{"x":1}'}},
                                      {"id": "2", "extra": {"signature": "s"}, "function": {"name": "b"}}]}),
    ([{"choices": [{"message": {"content": "So.", "tool_calls": [WEATHER]}}]}], {"content": "So.", "tool_calls": [WEATHER]}),
    ([piece(function_call={"name": "f", "arguments": '{"a"'}), piece(function_call={"arguments": ":1}"})],
     {"content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}),
])  # fmt: skip
def test_tool_calls_come_back_with_their_ids(events: list[Any], item: dict[str, Any]) -> None:
    messages = replayed(*events)
    assert messages is not None
    assert [message.item for message in messages] == [{"role": "assistant", **item}]
    assert [message.role for message in messages] == ["assistant"]


@pytest.mark.parametrize("events", [
    [piece(content="Hi"), b"[DONE]"], [piece(role="assistant")], [piece(tool_calls=None)], [],
])  # fmt: skip
def test_an_answer_without_calls_is_its_text(events: list[Any]) -> None:
    assert replayed(*events) is None


@pytest.mark.parametrize(("events", "text"), [
    ([piece(content="tool_calls are a thing")], "tool_calls are a thing"),
    ([piece(content="Hi", tool_calls=[])], "Hi"),
    ([{"choices": [{"index": 1, "delta": {"content": "B"}}]}, piece(content="A"),
      {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}], "Aa"),
    ([{"choices": [{"index": 0, "message": {"content": [{"type": "text", "text": "A"}]}},
                   {"index": 1, "message": {"content": "B"}}]}], "A"),
    ([piece(reasoning_content="hm"), {"choices": [{"index": 1, "delta": {"content": "B"}}]}], "hm"),
])  # fmt: skip
def test_the_next_turn_repeats_the_first_choice(events: list[Any], text: str) -> None:
    assert replayed(*events) == [Message("assistant", (text,))]


def test_the_order_of_two_turns_is_question_call_result() -> None:
    messages = replayed(call(WEATHER["function"], index=0, id="c1", type="function"))
    assert messages is not None
    turn = Turn(model="m", items=(Message.of(RESULT),), history=(Message("user", ("How warm?",)), *messages))
    assert sent(turn)["messages"] == [
        {"role": "user", "content": "How warm?"}, {"role": "assistant", "content": None, "tool_calls": [WEATHER]}, RESULT,
    ]  # fmt: skip


def test_the_texts_of_several_choices_are_apart() -> None:
    def piece(index: int, **delta: Any) -> bytes:
        return msgspec.json.encode({"choices": [{"index": index, "delta": delta}]})

    call = [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]
    events = [
        piece(1, content="x"), piece(0, reasoning_content="hm"), piece(0, content="a"), piece(1, content="y"),
        piece(0, tool_calls=call), b'{"choices":[],"usage":{"total_tokens":9}}', b"[DONE]",
    ]  # fmt: skip
    reader = Chat().reader()
    reader.feed(events[:2], [None] * 2)
    reader.feed(events[2:], [None] * 5)
    assert reader.choices() == [Delta("a", "hm", "f{}"), Delta("xy")]
    whole = Chat().reader()
    messages = [{"index": at, "message": {"content": text}} for at, text in enumerate("ab")]
    whole.feed([msgspec.json.encode({"choices": messages})], [None])
    assert whole.choices() == [Delta("a"), Delta("b")]
    alone = Chat().reader()
    alone.feed(events[1:3], [None] * 2)
    assert alone.choices() is None


REFUSES = {"refused": 1.0}


@pytest.mark.parametrize(("message", "delta"), [
    ({"refusal": "No"}, Delta("No", extra=REFUSES)),
    ({"content": None, "refusal": "No"}, Delta("No", extra=REFUSES)),
    ({"content": "Yes", "refusal": None}, Delta("Yes")),
    ({"content": "Yes", "refusal": ""}, Delta("Yes")),
    ({"content": None, "audio": {"id": "a", "data": "UklG", "transcript": "Hi"}}, Delta("Hi")),
    ({"audio": {"transcript": " there"}}, Delta(" there")),
    ({"audio": {"id": "a", "data": "UklG"}}, Delta(items=1)),
    ({"audio": {"id": "a", "expires_at": 7}}, Delta()),
])  # fmt: skip
@pytest.mark.parametrize("form", ["delta", "message"])
def test_a_refusal_and_the_transcript_of_sound_are_text(form: str, message: dict[str, Any], delta: Delta) -> None:
    answer = {"choices": [{"index": 0, form: message}]}
    assert Chat().decode(msgspec.json.encode(answer)) == delta


def test_refusals_of_several_choices_are_text() -> None:
    answer = {"choices": [{"index": 0, "message": {"content": "A"}}, {"index": 1, "message": {"refusal": "No"}}]}
    event = msgspec.json.encode(answer)
    assert Chat().decode(event) == Delta("ANo", extra=REFUSES)
    reader = Chat().reader()
    reader.feed([event], [None])
    assert [choice.text for choice in reader.choices() or ()] == ["A", "No"]
