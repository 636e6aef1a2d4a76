"""The hf_tei_rankings dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Turn
from aiperf_endpoint_hf_tei_rankings import HfTeiRankings
from aiperf_endpoint_hf_tei_rankings.contract import TURN, HfTeiRankingsContract
from msgspec.structs import replace

BODY = b'{"query":"dogs","texts":["cats","puppies"],"raw_scores":true}'


class TestHfTeiRankingsKeepsTheContract(HfTeiRankingsContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = HfTeiRankings().encode(replace(TURN, extra={"raw_scores": True}, max_tokens=7, stream=True))
    assert (request.path, request.method, request.body) == ("/rerank", "POST", BODY)


def test_query_and_passages_count_as_input_in_this_order() -> None:
    counted = HfTeiRankings().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids]) == (["dogs", "cats", "puppies"], [])
    assert HfTeiRankings().items_of(BODY) == 2


def test_a_turn_without_a_query_is_refused() -> None:
    with pytest.raises(BadDataset, match=r"^hf_tei_rankings: the turn has no text that is called query"):
        HfTeiRankings().encode(Turn(("dogs",), model="rr"))


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>502</html>", "not JSON"),
    (b'{"object":"list"}', "no list of scores"),
    (b'{"results":[{"index":0}]}', "a passage without a score"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^hf_tei_rankings: .*{why}") as caught:
        HfTeiRankings().decode(answer)
    assert caught.value.raw == answer
