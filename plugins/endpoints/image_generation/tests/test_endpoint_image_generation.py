"""Image generation: what goes out, and what is made of what comes back."""

from __future__ import annotations

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, Delta, Turn
from aiperf_endpoint_image_generation import ImageGeneration
from aiperf_endpoint_image_generation.contract import ImageGenerationContract


class TestImageGenerationKeepsTheContract(ImageGenerationContract):
    pass


def made(*events: bytes) -> tuple[int, list[int]]:
    """Images of an answer, and those of each event."""
    reader = ImageGeneration().reader()
    deltas = reader.feed(events, [None] * len(events))
    last = reader.close()
    images = 0 if last is None or last.extra is None else last.extra["made_images"]
    return images, [0 if delta is None else delta.items for delta in deltas]


def test_the_body_is_exactly_this() -> None:
    request = ImageGeneration().encode(Turn(("a red kite",), model="sd", stream=True, extra={"size": "512x512", "n": 2}))
    assert (request.path, msgspec.json.decode(request.body)) == (
        "/v1/images/generations",
        {"prompt": "a red kite", "model": "sd", "response_format": "b64_json", "n": 2, "stream": True, "size": "512x512"},
    )


def test_a_turn_without_a_prompt_is_refused() -> None:
    with pytest.raises(BadDataset, match="needs a text"):
        ImageGeneration().encode(Turn())


@pytest.mark.parametrize(("events", "images", "items"), [
    ([b'{"data":[{"b64_json":"iVBO"},{"url":"http://there/1.png"}]}'], 2, [2]),
    ([b'{"data":[{"b64_json":null,"url":"http://there/1.png"}]}'], 1, [1]),
    ([b'{"data":[{"b64_json":null},{"b64_json":"iVBO"}]}'], 1, [1]),
    ([b'{"type":"image_generation.partial_image","partial_image_index":0,"b64_json":"iVBO"}'], 0, [1]),
    ([b'{"partial_image_index":0,"b64_json":"iVBO"}', b'{"b64_json":"iVBO"}'], 1, [1, 1]),
    ([b'{"type":"image_generation.completed","partial_image_index":2,"b64_json":"iVBO"}'], 1, [1]),
    ([b'{"type":"response.created"}', b'{"data":[]}'], 0, [0, 0]),
])  # fmt: skip
def test_images_are_counted_where_they_are_whole(events: list[bytes], images: int, items: list[int]) -> None:
    assert made(*events) == (images, items)


@pytest.mark.parametrize("text", ["iVBO", "iVBORw", "iVBO\\nRw==", "_-8", "data:image/png;base64,iVBO"])
def test_base64_is_read_in_all_its_forms(text: str) -> None:
    assert made(b'{"data":[{"b64_json":"' + text.encode() + b'"}]}') == (1, [1])


@pytest.mark.parametrize("text", ["iVBO!", "iVBOR", "i=VB", "äöü"])
def test_damaged_base64_fails_the_request(text: str) -> None:
    with pytest.raises(BadResponse, match="image_generation: the base64 of an image is damaged"):
        made(b'{"data":[{"b64_json":"' + text.encode() + b'"}]}')


def test_a_streamed_error_keeps_its_words() -> None:
    with pytest.raises(BadResponse, match="no GPU"):
        ImageGeneration().decode(b'{"type":"error","error":{"message":"no GPU","code":503}}')


def test_the_usage_of_the_end_is_kept() -> None:
    event = b'{"type":"image_generation.completed","b64_json":"iVBO","usage":{"total_tokens":9}}'
    assert ImageGeneration().decode(event) == Delta(usage={"total_tokens": 9}, items=1)
