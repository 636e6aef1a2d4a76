"""The native API of SGLang: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf import BadResponse, Delta, HttpRequest, Turn
from aiperf_endpoint_sglang_generate import SglangGenerate
from aiperf_endpoint_sglang_generate.contract import SglangGenerateContract, event


def body(*texts: str, **turn: Any) -> bytes:
    return SglangGenerate().encode(Turn(texts, model="m", **turn)).body


@pytest.mark.parametrize(("turn", "wanted"), [
    ({"stream": True, "max_tokens": 8, "extra": {"temperature": 0, "rid": "x"}},
     b'{"text":"Hi","sampling_params":{"max_new_tokens":8,"temperature":0},"stream":true,"rid":"x"}'),
    ({"extra": {"sampling_params": {"top_k": 1}, "ignore_eos": True}},
     b'{"text":"Hi","sampling_params":{"top_k":1,"ignore_eos":true},"stream":false}'),
    ({"extra": {"input_ids": [1, 2]}}, b'{"sampling_params":{},"stream":false,"input_ids":[1,2]}'),
])  # fmt: skip
def test_the_body_is_exactly_this(turn: dict[str, Any], wanted: bytes) -> None:
    assert body("Hi", **turn) == wanted


def test_several_texts_are_a_list() -> None:
    assert body("a", "b") == b'{"text":["a","b"],"sampling_params":{},"stream":false}'


def read(*events: bytes) -> list[Delta]:
    return [delta or Delta() for delta in SglangGenerate().reader().feed(events, [None] * len(events))]


def counts(completion: int) -> dict[str, int]:
    return {"prompt_tokens": 5, "completion_tokens": completion, "cached_tokens": 1}


def test_a_text_that_is_repeated_counts_once() -> None:
    assert read(event("a", 1), event("a", 2), event("ab", 3), event("ab", 3, '"stop"')) == [
        Delta("a", usage=counts(1)), Delta("", usage=counts(2)), Delta("b", usage=counts(3)),
        Delta("", usage=counts(3), finish="stop"),
    ]  # fmt: skip


def test_pieces_of_a_server_with_incremental_output_count_as_they_are() -> None:
    texts = ["a", " b", " c", " b"]
    assert [delta.text for delta in read(*(event(text, at + 1) for at, text in enumerate(texts)))] == texts


def test_the_tokens_of_several_choices_are_summed() -> None:
    events = [event("a", 1), event("x", 1, more=',"index":1'), event("ab", 2), event("xy", 2, more=',"index":1')]
    deltas = read(*events)
    assert [delta.text for delta in deltas] == ["a", "x", "b", "y"]
    assert [delta.usage["completion_tokens"] for delta in deltas if delta.usage] == [1, 2, 3, 4]


@pytest.mark.parametrize(("events", "texts"), [
    ([event("a", 1), event("x", 1, more=',"index":1'), event("ab", 2), event("xy", 2, more=',"index":1')], ["ab", "xy"]),
    ([b"[%b,%b]" % (event("a b", 2), event("x", 1))], ["a b", "x"]),
])  # fmt: skip
def test_the_texts_of_several_choices_are_apart(events: list[bytes], texts: list[str]) -> None:
    reader = SglangGenerate().reader()
    reader.feed(events, [None] * len(events))
    assert [choice.text for choice in reader.choices() or ()] == texts


def test_one_choice_is_no_several() -> None:
    reader = SglangGenerate().reader()
    reader.feed([event("a", 1), event("ab", 2)], [None] * 2)
    assert reader.choices() is None


def test_a_whole_answer_of_several_choices_is_a_list() -> None:
    (delta,) = read(b"[%b,%b]" % (event("a", 1, '"stop"'), event("xy", 2, '"length"')))
    assert (delta.text, delta.usage, delta.finish) == ("axy", counts(3), "stop")


def test_token_ids_without_text_are_timed() -> None:
    told = [b'{"output_ids":[7],"meta_info":{"completion_tokens":%d}}' % tokens for tokens in (1, 3)]
    assert [delta.items for delta in read(*told)] == [1, 2]
    assert [delta.items for delta in read(b'{"output_ids":[7]}', b'{"output_ids":[8,9]}')] == [1, 2]


def test_counts_that_are_missing_are_missing() -> None:
    assert read(b'{"text":"a","meta_info":{"prompt_tokens":5}}', b'{"text":"ab"}') == [Delta("a"), Delta("b")]


ERRORS = [
    (b'{"error":{"message":"too long","type":"BadRequest","code":400}}', "too long", 400, "BadRequest"),
    (event("a", 1, '{"type":"abort","message":"out of memory","status_code":503}'), "out of memory", 503, "abort"),
    (event("a", 1, '{"type":"abort"}'), "aborted", None, "abort"),
]


@pytest.mark.parametrize(("last", "said", "code", "kind"), ERRORS)
def test_an_error_in_a_stream_is_the_servers_own(last: bytes, said: str, code: int | None, kind: str) -> None:
    with pytest.raises(BadResponse, match=said) as caught:
        read(event("a", 1), last)
    assert (caught.value.code, caught.value.kind, caught.value.raw) == (code, kind, last)


@pytest.mark.parametrize("texts", [("a", "ab", "abc STOP", "abc"), ("abc STOP", "abc")])
def test_of_a_text_that_shrinks_what_stayed_counts_and_it_is_said_once(
    texts: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = SglangGenerate()
    for _ in range(2):
        reader = endpoint.reader()
        deltas = reader.feed([event(text, 1) for text in texts], [None] * len(texts))
        assert "".join(delta.text for delta in deltas if delta is not None) == "abc STOP"
        assert [choice.text for choice in reader.choices() or ()] == ["abc"]
    assert [each.getMessage().partition(":")[0] for each in caplog.records] == ["sglang_generate"]


@pytest.mark.parametrize("events", [[b"<html>"], [event("a", 1), b"<html>"], [b'[{"text":7}]'], [b'{"meta_info":[]}']])
def test_other_answers_are_bad_responses(events: list[bytes]) -> None:
    with pytest.raises(BadResponse, match=r"^sglang_generate: not ") as caught:
        read(*events)
    assert caught.value.raw == events[-1]


@pytest.mark.parametrize(("sent", "texts", "ids"), [
    (b'{"text":"a b","sampling_params":{}}', ["a b"], []),
    (b'{"text":["a","b"]}', ["a", "b"], []),
    (b'{"input_ids":[5,6,7]}', [], [5, 6, 7]),
    (b'{"input_ids":[[5,6],[7]]}', [], [5, 6, 7]),
])  # fmt: skip
def test_the_input_counts_as_it_was_sent(sent: bytes, texts: list[str], ids: list[int]) -> None:
    counted = SglangGenerate().prompt_of(HttpRequest("/", sent))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (texts, ids)


class TestSglangGenerateKeepsTheContract(SglangGenerateContract):
    pass
