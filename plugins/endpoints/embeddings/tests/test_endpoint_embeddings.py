"""The embeddings dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, Delta, HttpRequest, Media, Message, Turn
from aiperf_endpoint_embeddings import Embeddings
from aiperf_endpoint_embeddings.contract import EmbeddingsContract

BASE64 = (
    b'{"model":"minilm","object":"list","usage":{"prompt_tokens":4,"total_tokens":4},"data":['
    b'{"embedding":"%b","index":0,"object":"embedding"}]}'
)


class TestEmbeddingsKeepsTheContract(EmbeddingsContract):
    pass


@pytest.mark.parametrize(("turn", "body"), [
    (Turn(("a b", "c d"), model="e5", extra={"input_type": "query"}),
     b'{"model":"e5","input":["a b","c d"],"input_type":"query"}'),
    (Turn(("a b",), model="e5", max_tokens=7, stream=True), b'{"model":"e5","input":["a b"]}'),
    (Turn(("a b",), model="e5", extra={"model": "e6"}), b'{"model":"e6","input":["a b"]}'),
], ids=["extras", "neither length nor stream", "extras over all"])  # fmt: skip
def test_the_body_is_exactly_this(turn: Turn, body: bytes) -> None:
    request = Embeddings().encode(turn)
    assert (request.path, request.method, request.body) == ("/v1/embeddings", "POST", body)


@pytest.mark.parametrize(("turn", "why"), [
    (Turn(("a",), (Media("image", "i.png"),)), "takes texts, not image"),
    (Turn(("a",), history=(Message("system", ("b",)),)), "takes texts, not earlier messages"),
    (Turn(), "nothing to send"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        Embeddings().encode(turn)


@pytest.mark.parametrize(("body", "texts", "ids", "items"), [
    (b'{"model":"m","input":["a b","c"]}', ["a b", "c"], [], 2),
    (b'{"input":"a b"}', ["a b"], [], 1),
    (b'{"input":[5,6,7]}', [], [5, 6, 7], 1),
    (b'{"input":[[5,6],[7]]}', [], [5, 6, 7], 2),
])  # fmt: skip
def test_inputs_are_counted_as_they_are_sent(body: bytes, texts: list[str], ids: list[int], items: int) -> None:
    counted = Embeddings().prompt_of(HttpRequest("/", body))
    assert counted is not None
    assert ([*counted.texts], [*counted.ids], Embeddings().items_of(body)) == (texts, ids, items)


def test_vectors_in_base64_count_by_their_bytes() -> None:
    decoded = Embeddings().decode(BASE64 % b"2Ck4vJ/9MD1Dp669")  # as recorded of llama.cpp, its first three numbers
    assert decoded == Delta(items=1, usage={"prompt_tokens": 4, "total_tokens": 4}, extra={"dimensions": 3.0})


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>502</html>", "not JSON"),
    (b'{"data":[{"object":"embedding"}]}', "missing required field `embedding`"),
    (b'{"data":[{"embedding":[1]}]}', "missing required field `object`"),
    (b'{"data":[{"object":"vector","embedding":[1]}]}', "Invalid enum value 'vector'"),
    (b'{"data":[{"object":"embedding","embedding":[1,null]}]}', "Expected `float`, got `null`"),
    (b'{"data":[{"object":"embedding","embedding":[]}]}', "the vectors are empty"),
    (b'{"data":[{"object":"embedding","embedding":[1,2]},{"object":"embedding","embedding":[1]}]}', "of 1 and of 2 dimensions"),
    (BASE64 % b"2Ck4vJ/9", "6 bytes, which is no multiple of 4"),
    (BASE64 % b"2Ck4", "3 bytes"),
    (BASE64 % b"?", "no base64"),
])  # fmt: skip
def test_an_answer_without_good_vectors_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^embeddings: .*{why}") as caught:
        Embeddings().decode(answer)
    assert caught.value.raw == answer


def test_an_empty_body_has_no_content() -> None:
    assert Embeddings().decode(b"") is None
