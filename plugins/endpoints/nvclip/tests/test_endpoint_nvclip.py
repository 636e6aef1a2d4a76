"""The NV-CLIP dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import pytest
from aiperf import BadDataset, BadResponse, HttpRequest, Media, Message, Turn
from aiperf_endpoint_nvclip import NvClip
from aiperf_endpoint_nvclip.contract import NvClipContract

BODY = b'{"model":"nvclip","input":["a dog","data:image/png;base64,iVBO"]}'
PICTURE = Media("image", "data:image/png;base64,iVBO")


class TestNvClipKeepsTheContract(NvClipContract):
    pass


@pytest.mark.parametrize(("turn", "body"), [
    (Turn(("a dog",), (PICTURE,), model="nvclip", max_tokens=4), BODY),
    (Turn((), (PICTURE,), model="c", extra={"user": "u"}), b'{"model":"c","input":["data:image/png;base64,iVBO"],"user":"u"}'),
    (Turn(("a", "b"), model="c"), b'{"model":"c","input":["a","b"]}'),
])  # fmt: skip
def test_the_body_is_exactly_this(turn: Turn, body: bytes) -> None:
    request = NvClip().encode(turn)
    assert (request.path, request.body) == ("/v1/embeddings", body)


@pytest.mark.parametrize("turn", [
    Turn(("a",), (Media("video", "data:video/mp4;base64,AA"),)), Turn(("a",), history=(Message("user", ("b",)),)), Turn(),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn) -> None:
    with pytest.raises(BadDataset, match=r"^nvclip takes|nothing to send"):
        NvClip().encode(turn)


def test_images_do_not_count_as_text_but_as_inputs() -> None:
    counted = NvClip().prompt_of(HttpRequest("/", BODY))
    assert counted is not None
    assert ([*counted.texts], NvClip().items_of(BODY)) == (["a dog"], 2)


def test_another_answer_is_a_bad_response() -> None:
    with pytest.raises(BadResponse, match=r"^nvclip: not JSON"):
        NvClip().decode(b"<html>")
