"""Bytes of streams to events, wherever they are cut."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from aiperf import BadResponse, Endpoint
from aiperf.sdk.framing import (
    Framing,
    JsonArray,
    LengthPrefixed,
    Lines,
    ServerSentEvents,
    Whole,
    accept,
    framing_of,
    is_stream,
)
from hypothesis import given
from hypothesis import strategies as st

ELEMENTS: list[Any] = [
    {"a": "]}\\\"[{,"}, [1, [2, {"b": ","}], []], "text, ] \\ \" {", 7, -1.5, None, True, {}, [], "", {"deep": [{"x": ["}"]}]},
]  # fmt: skip


def split(framing: type[Framing], stream: bytes, *cuts: int) -> list[bytes]:
    made, places = framing(), [0, *sorted(cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in pairwise(places)]
    return [event.data for event in [event for piece in pieces for event in made.feed(piece)] + list(made.close())]


def grown(elements: list[Any], between: bytes = b",\r\n") -> bytes:
    return b" [" + between.join(map(msgspec.json.encode, elements)) + b"\n]\n"


@pytest.mark.parametrize(
    ("framing", "stream", "events"),
    [
        (Lines, b'{"a":1}\n\n{"b":2}\r\n{"c":3}', [b'{"a":1}', b'{"b":2}', b'{"c":3}']),
        (Lines, b"", []),
        (LengthPrefixed, b"\0\0\0\0\2hi\0\0\0\0\0\0\0\0\0\1!", [b"hi", b"", b"!"]),
        (JsonArray, grown(ELEMENTS), list(map(msgspec.json.encode, ELEMENTS))),
        (JsonArray, b"[]", []),
        (JsonArray, b'[{"a":1}\n,\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (JsonArray, b' {"error": [1, 2]}\n', [b'{"error": [1, 2]}']),
        (Whole, b"a\nb\n", [b"a\nb\n"]),
        (Whole, b"", []),
    ],
)
def test_a_stream_cut_anywhere_has_the_same_events(framing: type[Framing], stream: bytes, events: list[bytes]) -> None:
    assert split(framing, stream) == events
    assert split(framing, stream, *range(len(stream))) == events, "byte by byte"
    for cut in range(len(stream)):
        assert split(framing, stream, cut) == events, f"cut at {cut}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=5), st.lists(st.integers(0, 80), max_size=6))
def test_a_growing_array_has_the_elements_that_json_has(elements: list[Any], cuts: list[int]) -> None:
    stream = grown(elements)
    events = split(JsonArray, stream, *(min(cut, len(stream)) for cut in cuts))
    assert [msgspec.json.decode(event) for event in events] == elements


def test_an_element_is_complete_with_its_last_byte() -> None:
    made = JsonArray()
    assert [event.data for event in made.feed(b'[{"a":[1]}')] == [b'{"a":[1]}']
    assert list(made.feed(b',{"b":2')) == []
    assert [event.data for event in made.feed(b"}]")] == [b'{"b":2}']


@pytest.mark.parametrize("stream", [b"\1\0\0\0\2hi", b"\0\0\0\0\5hi", b"\0\0"])
def test_a_broken_message_is_a_bad_response(stream: bytes) -> None:
    with pytest.raises(BadResponse):
        split(LengthPrefixed, stream)


@pytest.mark.parametrize("framing", ["lines", Lines(), lambda: None, dict, None])
def test_anything_else_is_no_framing(framing: Any) -> None:
    endpoint = type("Odd", (Endpoint,), {"framing": framing})(None)
    with pytest.raises(TypeError, match=r"^framing is .*, not a class with feed\(data\) and close\(\)$"):
        framing_of(endpoint)


@pytest.mark.parametrize(
    ("framing", "stream"),
    [(ServerSentEvents, "text/event-stream"), (Lines, "application/x-ndjson"), (JsonArray, "*/*"), (Whole, "*/*")],
)
def test_a_request_accepts_what_its_framing_reads(framing: type[Framing], stream: str) -> None:
    assert (accept(framing, asked=True), accept(framing, asked=False)) == (stream, "application/json")


@pytest.mark.parametrize(
    ("framing", "event_stream", "asked", "stream"),
    [
        (ServerSentEvents, True, False, True), (ServerSentEvents, False, True, False), (Lines, False, True, True),
        (Lines, False, False, False), (Whole, True, True, False),
    ],
)  # fmt: skip
def test_only_event_streams_are_known_by_their_content_type(
    framing: type[Framing], event_stream: bool, asked: bool, stream: bool
) -> None:
    assert is_stream(framing, event_stream=event_stream, asked=asked) is stream


@pytest.mark.parametrize(("framing", "begin", "end"), [(ServerSentEvents, b"data: ", b"\n\n"), (Lines, b"", b"\n")])
def test_an_event_without_end_is_given_up_and_a_long_stream_is_not(
    framing: type[Framing], begin: bytes, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("aiperf.sdk.sse", "aiperf.sdk.framing"):
        monkeypatch.setattr(f"{module}.MOST_EVENT_BYTES", 1 << 10)
    stream = framing()
    pieces = [begin, b"x" * 1000, end] * 5
    assert sum(len(stream.feed(piece)) for piece in pieces) == 5
    stream.feed(begin + b"y" * 1000)
    with pytest.raises(BadResponse, match=r"(?s)longer than .*MiB") as caught:
        stream.feed(b"y" * 100)
    assert caught.value.raw.startswith(begin + b"yyy")


def test_a_framing_of_ones_own_streams_in_a_new_process() -> None:
    code = (
        "import aiperf.sdk.framing as f; own = type('Own', (), {'feed': print, 'close': print}); "
        "print(f.accept(own, asked=True), f.event_mark(own, asked=True), f.is_stream(own, event_stream=False, asked=True))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("*/* b'' True\n", "")
