"""What endpoints of rankings share."""

from __future__ import annotations

import logging

import pytest
from aiperf.errors import BadDataset, BadResponse
from aiperf.sdk.model import Delta, Turn
from aiperf_dialects.scores import QueryAndPassages, count_passages, ranking_probe, read_scores

# Recorded answers of llama.cpp.
COHERE = (
    b'{"model":"minilm-rank","object":"list","usage":{"prompt_tokens":10,"total_tokens":10},"results":['
    b'{"index":0,"relevance_score":2.4717822074890137},{"index":1,"relevance_score":1.0129882097244263}]}'
)
BARE = b'[{"index":0,"score":2.4717822074890137},{"index":1,"score":1.0129882097244263}]'
REFUSED = b'{"error":{"code":400,"message":"\\"documents\\" must be a non-empty string array","type":"invalid_request_error"}}'
NIM = b'{"rankings":[{"index":1,"logit":2.5},{"index":0,"logit":-1.0}]}'
VLLM = b'{"object":"list","data":[{"index":0,"object":"score","score":1.0}],"usage":{"prompt_tokens":5,"total_tokens":5}}'


@pytest.mark.parametrize(("answer", "delta"), [
    (COHERE, Delta(items=2, usage={"prompt_tokens": 10, "total_tokens": 10})),
    (BARE, Delta(items=2)),
    (NIM, Delta(items=2)),
    (VLLM, Delta(items=1, usage={"prompt_tokens": 5, "total_tokens": 5})),
    (b'{"results":[{"index":0,"relevance_score":0}]}', Delta(items=1)),
    (b"", None),
])  # fmt: skip
def test_scores_are_read_in_every_form(answer: bytes, delta: Delta | None) -> None:
    assert read_scores("x", answer) == delta


@pytest.mark.parametrize(("answer", "why"), [
    (REFUSED, '^"documents" must be a non-empty string array$'),
    (b'{"object":"list"}', "^x: the answer has no list of scores$"),
    (b'[{"index":0,"score":1},{"index":1}]', "^x: the answer has a passage without a score$"),
    (b'{"results":{}}', "^x: not of this dialect: Expected `array"),
    (b"<html>", "^x: not JSON$"),
])  # fmt: skip
def test_an_answer_without_scores_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=why) as caught:
        read_scores("x", answer)
    assert caught.value.raw == answer


@pytest.mark.parametrize(("body", "items"), [
    (b'{"model":"m","query":{"text":"q"},"passages":[{"text":"a"},{"text":"b"}]}', 2),
    (b'{"query":"q","texts":["a","b","c"]}', 3),
    (b'{"query":"q","documents":["a","b","c"],"top_n":2}', 2),
    (b'{"query":"q","documents":["a"],"top_n":2}', 1),
    (b'{"query":"q","documents":["a","b"],"top_n":0}', 2),
    (b'{"query":"q","documents":["a","b"],"top_k":1}', 1),
    (b'{"text_1":"q","text_2":["a","b"]}', 2),
    (b'{"text_1":"q","text_2":"a"}', 1),
    (b'{"query":"q"}', None),
    (b'{"texts":7}', None),
    (b"\xff", None),
])  # fmt: skip
def test_a_score_is_expected_for_each_passage_or_as_many_as_asked_for(body: bytes, items: int | None) -> None:
    assert count_passages(body) == items


@pytest.mark.parametrize(("named", "found", "said"), [
    ({"query": ("q",), "passages": ("a", "b")}, ("q", ("a", "b")), []),
    ({"queries": ("q", "r"), "passage": ("a",)}, ("q", ("a",)), ["only the first query"]),
    ({"query": "q"}, ("q", ()), ["no texts that are called passages"]),
    ({"query": "q", "passages": "a", "title": "t"}, ("q", ("a",)), ["'title' are not sent"]),
])  # fmt: skip
def test_what_is_amiss_with_a_turn_is_said_once(
    named: dict[str, str | tuple[str, ...]], found: tuple[str, tuple[str, ...]], said: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    turns = QueryAndPassages("x")
    with caplog.at_level(logging.WARNING):
        assert [turns.of(Turn(named=named)) for _ in range(2)] == [found] * 2
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(said) and all(part in message for part, message in zip(said, messages, strict=True))


def test_a_turn_needs_a_query_unless_it_has_a_payload() -> None:
    with pytest.raises(BadDataset, match=r"^x: the turn has no text that is called query") as caught:
        QueryAndPassages("x").of(Turn(("dogs",)))
    assert "passages" in caught.value.hints[0]
    assert QueryAndPassages("x").of(Turn(payload={"a": 1})) == ("", ())
    assert QueryAndPassages("x").of(ranking_probe()) == ("Hello", ("Hello",))
