"""Events read by their envelope have the fields that decoding gives, or are left to be decoded."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from aiperf.errors import BadResponse
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.model import Delta
from aiperf_reducer_columns.reduce.answer import read_answer
from aiperf_reducer_columns.reduce.envelopes import read_envelopes
from aiperf_testing.journals import Plain
from hypothesis import given
from hypothesis import strategies as st

decode = Plain().decode
ODD = ("\\", '"', '","', '\\","', "\\u00e9", "text", "")
TEXTS = st.lists(st.one_of(st.text(), st.sampled_from(ODD)), min_size=1, max_size=12)


class Counting:
    """Decodes events and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, event: bytes) -> Delta | None:
        self.calls += 1
        return decode(event)


def wrapped(text: str, **more: Any) -> bytes:
    return msgspec.json.encode({"id": "chunk-1", "text": text, "created": 17, **more})


def agrees(events: Sequence[bytes]) -> None:
    found, deltas = read_envelopes(events, Plain().reader().feed), [decode(event) or Delta() for event in events]
    if found is not None:
        assert found.texts == [delta.text for delta in deltas]
        assert found.reasonings == [delta.reasoning for delta in deltas]
        assert [usage for usage in found.usages if usage] == [delta.usage for delta in deltas if delta.usage]
        assert [finish for finish in found.finishes if finish] == [delta.finish for delta in deltas if delta.finish]


@given(TEXTS)
def test_whatever_the_texts_are_they_are_what_decoding_says(texts: list[str]) -> None:
    agrees([wrapped(text) for text in texts])


@given(TEXTS, TEXTS)
def test_reasoning_and_then_text_are_two_runs(thoughts: list[str], texts: list[str]) -> None:
    events = [msgspec.json.encode({"id": 1, "reasoning": each}) for each in thoughts]
    agrees([*events, *map(wrapped, texts), msgspec.json.encode({"finish": "stop", "usage": {"n": 3}}), b"[DONE]"])


@given(st.lists(st.binary(max_size=20), max_size=4), st.integers(1, 5))
def test_bytes_that_no_writer_of_json_makes_are_never_taken_for_text(insides: list[bytes], at: int) -> None:
    events = [wrapped(f"word {i}") for i in range(6)]
    head, _, tail = events[0].partition(b"word 0")
    events[at:at] = [head + inside + tail for inside in insides]
    try:
        deltas = [decode(event) for event in events]
    except (BadResponse, UnicodeDecodeError):
        with contextlib.suppress(BadResponse, UnicodeDecodeError):
            assert read_envelopes(events, Plain().reader().feed) is None
        return
    assert len(deltas) == len(events)
    agrees(events)


def test_a_run_costs_three_decodings() -> None:
    counting = Counting()
    found = read_envelopes([wrapped(f"word {i}") for i in range(100)], DecodingReader(counting).feed)
    assert found is not None and found.texts[99] == "word 99"
    assert counting.calls == 2


@pytest.mark.parametrize(
    "events",
    [
        [wrapped(f"word {i}", number=i) for i in range(9)],
        [wrapped(f"word {i}", again=f"word {i}") for i in range(9)],
        [msgspec.json.encode({"tool": f"call {i}"}) for i in range(9)],
    ],
    ids=["something else differs", "the string stands there twice", "tool calls"],
)
def test_where_events_are_not_alike_each_is_decoded(events: list[bytes]) -> None:
    assert read_envelopes(events, Plain().reader().feed) is None


def test_a_promise_that_is_not_kept_is_noticed_at_the_last_event() -> None:
    def shouts(event: bytes) -> Delta | None:
        delta = decode(event)
        return delta and Delta(delta.text.upper() if delta.text == "end" else delta.text)

    assert read_envelopes([wrapped(text) for text in ("one", "two", "end")], DecodingReader(shouts).feed) is None


def test_an_answer_is_the_same_with_and_without_the_promise() -> None:
    events = [wrapped("a"), *(wrapped(f" {i}") for i in range(20))]
    events += [msgspec.json.encode({"reasoning": "hm"}), wrapped("", finish="stop")]
    reads = [(10 + i, 11 + i, 0, b"data: " + event + b"\n\n") for i, event in enumerate(events)]
    plain, quick = (read_answer(reads, Plain().reader, streamed=True, repeats=repeats) for repeats in (False, True))
    for name in ("text", "reasoning", "stamps", "kinds", "finish", "usage", "first_output_ns", "items"):
        assert getattr(plain, name) == getattr(quick, name), name
