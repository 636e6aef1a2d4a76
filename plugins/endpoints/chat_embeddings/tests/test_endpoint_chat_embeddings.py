"""Embeddings of chats: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, Delta, HttpRequest, Media, Turn
from aiperf_endpoint_chat_embeddings import ChatEmbeddings
from aiperf_endpoint_chat_embeddings.contract import TURN, ChatEmbeddingsContract

BODY = (
    b'{"messages":[{"role":"system","content":"Represent the image."},{"role":"user","content":['
    b'{"type":"text","text":"What is shown?"},'
    b'{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]}],"model":"vlm2vec"}'
)


class TestChatEmbeddingsKeepsTheContract(ChatEmbeddingsContract):
    pass


@pytest.mark.parametrize(("turn", "body"), [
    (TURN, BODY),
    (
        Turn(("Hi",), model="m", max_tokens=7, stream=True, extra={"encoding_format": "float"}),
        b'{"messages":[{"role":"user","content":"Hi"}],"model":"m","encoding_format":"float"}',
    ),
])  # fmt: skip
def test_the_body_is_exactly_this(turn: Turn, body: bytes) -> None:
    request = ChatEmbeddings().encode(turn)
    assert (request.path, request.body) == ("/v1/embeddings", body)


def test_texts_of_messages_count_as_input() -> None:
    counted = ChatEmbeddings().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert [*counted.texts] == ["Represent the image.", "What is shown?"]


def test_other_media_are_refused() -> None:
    with pytest.raises(BadDataset, match="has no media of kind 'smell'"):
        ChatEmbeddings().encode(Turn(("a",), (Media("smell", "x"),), model="m"))


@pytest.mark.parametrize(("answer", "delta"), [
    (b'{"embeddings":[[0.1,0.2],[0.3,0.4]]}', Delta(items=2, extra={"dimensions": 2.0})),
    (b'{"embedding":[0.1,0.2]}', Delta(items=1, extra={"dimensions": 2.0})),
    (b'{"data":[{"embedding":"2Ck4vA=="}]}', Delta(items=1, extra={"dimensions": 1.0})),
])  # fmt: skip
def test_vectors_stand_in_several_places(answer: bytes, delta: Delta) -> None:
    assert ChatEmbeddings().decode(answer) == delta


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>", "not JSON"), (b'{"object":"list"}', "no vector"), (b'{"embeddings":[[1,2],[3]]}', "of 1 and of 2 dimensions"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^chat_embeddings: .*{why}"):
        ChatEmbeddings().decode(answer)
