"""The generate API of TGI: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf import BadResponse, Delta, HttpRequest, Media, Turn
from aiperf_endpoint_huggingface_generate import HuggingfaceGenerate
from aiperf_endpoint_huggingface_generate.contract import HuggingfaceGenerateContract, token


def body(*texts: str, run: dict[str, Any] | None = None, row: dict[str, Any] | None = None, **more: Any) -> bytes:
    run, row = run or {}, row or {}
    turn = Turn(texts, model="m", extra={**run, **row}, run_extra=run, row_extra=row, **more)
    return HuggingfaceGenerate().encode(turn).body


def test_the_body_is_exactly_this() -> None:
    wanted = b'{"inputs":"Say hi","parameters":{"max_new_tokens":4,"temperature":0.2}}'
    assert body("Say", "hi", run={"temperature": 0.2}, max_tokens=4) == wanted


def test_extras_of_the_run_are_parameters_and_those_of_a_row_are_fields() -> None:
    sent = body("a", run={"max_new_tokens": 9, "model": "x", "stream": True}, row={"user": "ada"}, max_tokens=4)
    assert sent == b'{"inputs":"a","parameters":{"max_new_tokens":9},"model":"x","stream":true,"user":"ada"}'


def test_pictures_stand_before_the_text() -> None:
    assert body("a", media=(Media("image", "i.png"), Media("image", "j.png"))) == (
        b'{"inputs":"![](i.png)![](j.png)a","parameters":{}}'
    )


def test_the_paths_are_two() -> None:
    paths = [HuggingfaceGenerate().encode(Turn(("a",), stream=stream)).path for stream in (False, True)]
    assert paths == ["/generate", "/generate_stream"]


WHOLE = {
    "an object": (b'{"generated_text":"Cat"}', Delta("Cat")),
    "in a list": (b' [{"generated_text":"Cat"}]', Delta("Cat")),
    "details": (
        b'{"generated_text":"Cat","details":{"finish_reason":"eos_token","generated_tokens":1,"prefill":[{},{}],"input_length":7}}',
        Delta("Cat", usage={"prompt_tokens": 2, "completion_tokens": 1}, finish="eos_token"),
    ),
    "an empty prefill": (
        b'{"generated_text":"Cat","details":{"generated_tokens":1,"prefill":[]}}', Delta("Cat", usage={"completion_tokens": 1})
    ),
    "a special token": (b'{"token":{"id":2,"text":"</s>","special":true},"generated_text":"x"}', Delta()),
}  # fmt: skip


@pytest.mark.parametrize(("event", "delta"), WHOLE.values(), ids=WHOLE.keys())
def test_an_answer_means(event: bytes, delta: Delta) -> None:
    assert HuggingfaceGenerate().reader().feed([event], [None]) == [delta]


@pytest.mark.parametrize(("event", "kind"), [
    (b'{"error":"Request failed during generation","error_type":"generation"}', "generation"), (b'{"error":"busy"}', None),
])  # fmt: skip
def test_an_error_in_a_stream_is_the_servers_own(event: bytes, kind: str | None) -> None:
    with pytest.raises(BadResponse, match=r"Request failed|busy") as caught:
        HuggingfaceGenerate().reader().feed([token("a"), event], [None] * 2)
    assert (caught.value.kind, caught.value.raw) == (kind, event)


@pytest.mark.parametrize("event", [
    b"[]", b"[7]", b'[{"generated_text":"a"},{"generated_text":"b"}]', b"[" * 9000, b'{"token":7}', b"<html>",
])  # fmt: skip
def test_other_answers_are_bad_responses(event: bytes) -> None:
    with pytest.raises(BadResponse, match=r"^huggingface_generate: not "):
        HuggingfaceGenerate().reader().feed([event], [None])


def test_the_input_counts_as_it_was_sent() -> None:
    counted = HuggingfaceGenerate().prompt_of(HttpRequest("/", b'{"inputs":"a b","parameters":{"max_new_tokens":3}}'))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (["a b"], [])


class TestHuggingfaceGenerateKeepsTheContract(HuggingfaceGenerateContract):
    pass
