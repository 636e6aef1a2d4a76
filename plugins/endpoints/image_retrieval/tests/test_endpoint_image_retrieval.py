"""The NIM image retrieval dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

import zlib

import pytest
from aiperf import BadDataset, BadResponse, Media, Turn
from aiperf.sdk.media import media_bytes
from aiperf_endpoint_image_retrieval import PROBE_PNG, ImageRetrieval
from aiperf_endpoint_image_retrieval.contract import ImageRetrievalContract

PNG, JPEG = Media("image", "data:image/png;base64,iVBO"), Media("image", "data:image/jpeg;base64,/9j/")


class TestImageRetrievalKeepsTheContract(ImageRetrievalContract):
    pass


def test_the_body_is_exactly_this() -> None:
    request = ImageRetrieval().encode(Turn((), (PNG, JPEG), model="m", max_tokens=7, extra={"merge_levels": ["word"]}))
    assert (request.path, request.body) == (
        "/v1/infer",
        b'{"input":[{"type":"image_url","url":"data:image/png;base64,iVBO"},{"type":"image_url","url":"data:image/jpeg;base64,/9j/"}],'
        b'"merge_levels":["word"]}',
    )


def test_the_probe_has_an_image_of_8_by_8_pixels() -> None:
    kind, png = media_bytes(Media("image", PROBE_PNG))
    assert (kind, png[16:24]) == ("image/png", bytes((0, 0, 0, 8, 0, 0, 0, 8)))
    length = int.from_bytes(png[33:37], "big")
    assert len(zlib.decompress(png[41 : 41 + length])) == 8 * (1 + 8 * 3)


@pytest.mark.parametrize(("turn", "why"), [
    (Turn(("a",), (PNG,)), "the turn has a text"),
    (Turn(), "needs an image"),
    (Turn((), (Media("image", "data:image/webp;base64,UklG"),)), "PNG and JPEG images, not 'data:image/webp"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        ImageRetrieval().encode(turn)


@pytest.mark.parametrize(("answer", "why"), [
    (b"<html>", "not JSON"), (b'{"data":{}}', "Expected `array`, got `object`"), (b"{}", "missing required field `data`"),
])  # fmt: skip
def test_another_answer_is_a_bad_response(answer: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=rf"^image_retrieval: .*{why}"):
        ImageRetrieval().decode(answer)
