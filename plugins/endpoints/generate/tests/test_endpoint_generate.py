"""The generate extension: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf import BadResponse, Delta, HttpRequest, Turn
from aiperf.sdk.endpoint import encoded
from aiperf_endpoint_generate import Generate
from aiperf_endpoint_generate.contract import GenerateContract, GrowingContract


def body(**turn: Any) -> bytes:
    return Generate().encode(Turn(model="ens", **turn)).body


def test_the_body_is_exactly_this() -> None:
    assert body(texts=("Hi",), stream=True, max_tokens=8) == b'{"text_input":"Hi","stream":true,"max_tokens":8}'
    assert body(texts=("a", "b"), extra={"temperature": 0.5}) == b'{"text_input":["a","b"],"temperature":0.5}'


@pytest.mark.parametrize(("stream", "path"), [(False, "/v2/models/a%2Fb/generate"), (True, "/v2/models/a%2Fb/generate_stream")])
def test_the_path_has_the_model(stream: bool, path: str) -> None:
    assert encoded(Generate(), Turn(("Hi",), model="a/b", stream=stream)).path == path


@pytest.mark.parametrize(("recorded", "turn"), [
    (b'{"text_input":"hello big world","max_tokens":3}', Turn(("hello big world",), max_tokens=3)),
    (b'{"text_input":"hello","max_tokens":3,"temperature":0.5}', Turn(("hello",), max_tokens=3, extra={"temperature": 0.5})),
    (b'{"text_input":"hello big world","max_tokens":3,"stream":true}', Turn(("hello big world",), max_tokens=3, stream=True)),
])  # fmt: skip
def test_requests_that_triton_took_are_ours(recorded: bytes, turn: Turn) -> None:
    assert msgspec.json.decode(Generate().encode(turn).body) == msgspec.json.decode(recorded)


def test_the_fields_of_an_answer_are_a_delta() -> None:
    feed = Generate().reader().feed
    assert feed([b'{"text_output":["a","b"]}', b"[DONE]"], [None] * 2) == [Delta("ab"), None]
    assert feed([b'{"model_name":"m"}'], [None]) == [Delta()]


RECORDED_ERRORS = [
    (b'{"error":"generate expects model to produce exactly 1 response, use generate stream for model that generates various'
     b' number of responses"}', "generate expects model to produce exactly 1 response"),
    (b'{"error":"Request for unknown model: \'nosuch\' is not found"}', "Request for unknown model: 'nosuch' is not found"),
    (b'{"error":"Traceback (most recent call last):\\n  File"}', "Traceback"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "said"), RECORDED_ERRORS)
def test_an_error_of_triton_is_the_servers_own(event: bytes, said: str) -> None:
    with pytest.raises(BadResponse, match=said) as caught:
        Generate().reader().feed([b'{"text_output":"a"}', event], [None] * 2)
    assert caught.value.raw == event


def test_a_text_that_shrinks_stays_as_long_as_it_then_is() -> None:
    reader = Generate().reader()
    reader.feed([b'{"text_output":"%b"}' % text for text in (b"a", b"ab", b"abc", b"ab")], [None] * 4)
    assert reader.choices() == [Delta("ab")]


@pytest.mark.parametrize(("sent", "texts"), [
    (b'{"text_input":"a b","max_tokens":3}', ["a b"]),
    (b'{"text_input":["a","b"]}', ["a", "b"]),
])  # fmt: skip
def test_the_input_counts_as_it_was_sent(sent: bytes, texts: list[str]) -> None:
    counted = Generate().prompt_of(HttpRequest("/", sent))
    assert counted is not None
    assert [*counted.texts] == texts


class TestGenerateKeepsTheContract(GenerateContract):
    pass


class TestAModelThatRepeatsItsTextKeepsTheContract(GrowingContract):
    pass
