"""The NIM embeddings dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Media, Message, Turn
from aiperf_endpoint_nim_embeddings import NimEmbeddings
from aiperf_endpoint_nim_embeddings.contract import NimEmbeddingsContract

PNG = "data:image/png;base64,iVBO"


class TestNimEmbeddingsKeepsTheContract(NimEmbeddingsContract):
    pass


@pytest.mark.parametrize(("turn", "body"), [
    (
        Turn(("a b", "c d"), model="e5", extra={"input_type": "query", "truncate": "END"}),
        b'{"model":"e5","input":["a b","c d"],"input_type":"query","truncate":"END"}',
    ),
    (Turn(("a", "b"), (Media("image", PNG), Media("image", f"{PNG}2")), model="e5"),
     b'{"model":"e5","input":["a data:image/png;base64,iVBO","b data:image/png;base64,iVBO2"]}'),
    (Turn((), (Media("image", PNG),), model="e5"), b'{"model":"e5","input":["data:image/png;base64,iVBO"]}'),
], ids=["texts", "pairs", "images"])  # fmt: skip
def test_the_body_is_exactly_this(turn: Turn, body: bytes) -> None:
    request = NimEmbeddings().encode(turn)
    assert (request.path, request.body) == ("/v1/embeddings", body)


@pytest.mark.parametrize(("turn", "why"), [
    (Turn(("a", "b"), (Media("image", PNG),)), "2 texts and 1 images"),
    (Turn(("a",), (Media("audio", "wav,AAAA"),)), "no other media"),
    (Turn(("a",), history=(Message("user", ("b",)),)), "no earlier messages"),
    (Turn(), "nothing to send"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        NimEmbeddings().encode(turn)


@pytest.mark.parametrize(("body", "texts", "items"), [
    (b'{"input":["a b","c"]}', ["a b", "c"], 2),
    (b'{"input":["a b data:image/png;base64,iVBO","data:image/png;base64,iVBO"]}', ["a b"], 2),
])  # fmt: skip
def test_images_do_not_count_as_text(body: bytes, texts: list[str], items: int) -> None:
    counted = NimEmbeddings().prompt_of(HttpRequest("/", body))
    assert counted is not None
    assert ([*counted.texts], NimEmbeddings().items_of(body)) == (texts, items)


def test_another_answer_is_a_bad_response() -> None:
    with pytest.raises(BadResponse, match=r"^nim_embeddings: not of this dialect"):
        NimEmbeddings().decode(b'{"data":[{"embedding":[1]}]}')
