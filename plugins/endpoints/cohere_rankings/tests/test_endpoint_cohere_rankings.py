"""The cohere_rankings dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Turn
from aiperf_endpoint_cohere_rankings import CohereRankings
from aiperf_endpoint_cohere_rankings.contract import TURN, CohereRankingsContract
from msgspec.structs import replace

BODY = b'{"model":"rr","query":"dogs","documents":["cats","puppies"],"return_documents":false}'


class TestCohereRankingsKeepsTheContract(CohereRankingsContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = CohereRankings().encode(replace(TURN, extra={"return_documents": False}, max_tokens=7, stream=True))
    assert (request.path, request.method, request.body) == ("/v2/rerank", "POST", BODY)


def test_query_and_passages_count_as_input_in_this_order() -> None:
    counted = CohereRankings().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (["dogs", "cats", "puppies"], [])
    assert CohereRankings().items_of(BODY) == 2


def test_a_turn_without_a_query_is_refused() -> None:
    with pytest.raises(BadDataset, match=r"^cohere_rankings: the turn has no text that is called query"):
        CohereRankings().encode(Turn(("dogs",), model="rr"))


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>502</html>", "not JSON"),
    (b'{"object":"list"}', "no list of scores"),
    (b'{"results":[{"index":0}]}', "a passage without a score"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^cohere_rankings: .*{why}") as caught:
        CohereRankings().decode(answer)
    assert caught.value.raw == answer
