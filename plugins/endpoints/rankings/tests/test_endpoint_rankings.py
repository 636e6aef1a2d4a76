"""The generic rankings: which form goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Turn
from aiperf_endpoint_rankings import Rankings
from aiperf_endpoint_rankings.contract import TURN, RankingsContract
from aiperf_endpoint_rankings.options import RankingsOptions
from msgspec.structs import replace

NIM = b'{"model":"rr","query":{"text":"dogs"},"passages":[{"text":"cats"},{"text":"puppies"}]}'
TEI = b'{"query":"dogs","texts":["cats","puppies"]}'


class TestRankingsKeepsTheContract(RankingsContract):
    pass


@pytest.mark.parametrize(("form", "path", "body"), [
    (None, None, NIM), (None, "/rerank", TEI), (None, "/v1/rerank", TEI), (None, "/other", NIM),
    ("tei", None, TEI), ("tei", "/other", TEI), ("nim", "/rerank", NIM),
])  # fmt: skip
def test_the_extra_input_or_the_path_decides_the_form(form: str | None, path: str | None, body: bytes) -> None:
    endpoint = Rankings(RankingsOptions(rankings=form))
    request = endpoint.encode(replace(TURN, path=path))
    assert (request.path, request.body) == ("/v1/ranking", body)


@pytest.mark.parametrize("body", [NIM, TEI])
def test_query_and_passages_count_as_input(body: bytes) -> None:
    counted = Rankings().prompt_of(HttpRequest("/", body))
    assert counted is not None
    assert ([*counted.texts], Rankings().items_of(body)) == (["dogs", "cats", "puppies"], 2)


def test_extra_inputs_stand_over_the_body() -> None:
    assert Rankings().encode(replace(TURN, extra={"model": "b", "truncate": "END"})).body == (
        b'{"model":"b","query":{"text":"dogs"},"passages":[{"text":"cats"},{"text":"puppies"}],"truncate":"END"}'
    )


def test_a_turn_without_a_query_is_refused() -> None:
    with pytest.raises(BadDataset, match="no text that is called query"):
        Rankings().encode(Turn(("dogs",), model="rr"))


def test_another_answer_is_a_bad_response() -> None:
    with pytest.raises(BadResponse, match=r"^rankings: not JSON"):
        Rankings().decode(b"<html>")
