"""vLLM's pooling dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, Delta, HttpRequest, Media, Turn
from aiperf_endpoint_pooling import Pooling
from aiperf_endpoint_pooling.contract import PoolingContract

BODY = b'{"model":"m","input":["a b","c d"],"task":"token_embed"}'


class TestPoolingKeepsTheContract(PoolingContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = Pooling().encode(Turn(("a b", "c d"), model="m", max_tokens=7, extra={"task": "token_embed"}))
    assert (request.path, request.body) == ("/pooling", BODY)


def test_the_inputs_count() -> None:
    counted = Pooling().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], Pooling().items_of(BODY)) == (["a b", "c d"], 2)


@pytest.mark.parametrize(("data", "delta"), [
    (b"[0.1,0.2]", Delta(items=1, extra={"dimensions": 2.0})),
    (b"[[0.1,0.2],[0.3,0.4]]", Delta(items=1, extra={"dimensions": 2.0})),
    (b'"2Ck4vJ/9MD0="', Delta(items=1)),
])  # fmt: skip
def test_pooled_values_are_a_vector_or_one_for_each_token_or_base64(data: bytes, delta: Delta) -> None:
    assert Pooling().decode(b'{"data":[{"index":0,"object":"pooling","data":%b}]}' % data) == delta


@pytest.mark.parametrize("turn", [Turn(("a",), (Media("image", "i.png"),)), Turn()])
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn) -> None:
    with pytest.raises(BadDataset, match=r"pooling takes texts|nothing to send"):
        Pooling().encode(turn)


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>", "not JSON"),
    (b'{"data":[{"index":0}]}', "missing required field `data`"),
    (b'{"data":[{"data":[[1,2],[3]]}]}', "of 1 and of 2 dimensions"),
    (b'{"data":[{"data":[[1,2],3]}]}', "numbers beside lists"),
    (b'{"data":[{"data":[]}]}', "empty"),
    (b'{"data":[{"data":"2Ck4"}]}', "3 bytes"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^pooling: .*{why}"):
        Pooling().decode(answer)
