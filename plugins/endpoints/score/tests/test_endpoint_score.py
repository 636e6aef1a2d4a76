"""The score dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Turn
from aiperf_endpoint_score import Score
from aiperf_endpoint_score.contract import TURN, ScoreContract
from msgspec.structs import replace

BODY = b'{"model":"rr","text_1":"dogs","text_2":["cats","puppies"],"truncate_prompt_tokens":64}'


class TestScoreKeepsTheContract(ScoreContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = Score().encode(replace(TURN, extra={"truncate_prompt_tokens": 64}, max_tokens=7, stream=True))
    assert (request.path, request.method, request.body) == ("/score", "POST", BODY)


def test_query_and_passages_count_as_input_in_this_order() -> None:
    counted = Score().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (["dogs", "cats", "puppies"], [])
    assert Score().items_of(BODY) == 2


@pytest.mark.parametrize(("body", "texts"), [
    (b'{"text_1":"q","text_2":"a"}', ["q", "a"]), (b'{"text_1":"q"}', None), (b"", None),
])  # fmt: skip
def test_a_payload_counts_where_it_is_of_this_form(body: bytes, texts: list[str] | None) -> None:
    counted = Score().prompt_of(HttpRequest("/", body))
    assert (None if counted is None else [*counted.texts]) == texts


def test_a_turn_without_a_query_is_refused() -> None:
    with pytest.raises(BadDataset, match=r"^score: the turn has no text that is called query"):
        Score().encode(Turn(("dogs",), model="rr"))


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>502</html>", "not JSON"),
    (b'{"object":"list"}', "no list of scores"),
    (b'{"results":[{"index":0}]}', "a passage without a score"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^score: .*{why}") as caught:
        Score().decode(answer)
    assert caught.value.raw == answer
