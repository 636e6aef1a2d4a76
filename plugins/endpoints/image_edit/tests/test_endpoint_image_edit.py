"""Image edits: the form, its images, and what can't be sent."""

from __future__ import annotations

import logging

import pytest
from aiperf import BadDataset, HttpRequest, Media, Turn
from aiperf_endpoint_image_edit import ImageEdit
from aiperf_endpoint_image_edit.contract import ImageEditContract

PNG, JPEG = Media("image", "data:image/png;base64,iVBORw0KGgo="), Media("image", "data:image/png;base64,/9j/4AAQ")
GIF, WEBP, BMP = (
    Media("image", f"data:image/x;base64,{text}") for text in ("R0lGODlhAQ==", "UklGRiQAAABXRUJQ", "Qk02AAAA")
)
REMOTE = Media("image", "http://there/street.png")


class TestImageEditKeepsTheContract(ImageEditContract):
    pass


def parts(request: HttpRequest) -> list[tuple[str, bytes]]:
    """Head and content of each part of a form."""
    boundary = request.content_type.partition("boundary=")[2].encode()
    pieces = request.body.split(b"--" + boundary)[1:-1]
    return [(head.decode(), content[:-2]) for head, _, content in (piece[2:].partition(b"\r\n\r\n") for piece in pieces)]


def test_the_form_is_exactly_this() -> None:
    extra = {"size": "512x512", "n": 2, "quality": None, "background": True}
    request = ImageEdit().encode(Turn(("make it night",), (PNG,), model="m", stream=True, extra=extra))
    assert (request.path, request.method) == ("/v1/images/edits", "POST")
    assert parts(request) == [
        ('Content-Disposition: form-data; name="prompt"', b"make it night"),
        ('Content-Disposition: form-data; name="model"', b"m"),
        ('Content-Disposition: form-data; name="response_format"', b"b64_json"),
        ('Content-Disposition: form-data; name="n"', b"2"),
        ('Content-Disposition: form-data; name="stream"', b"true"),
        ('Content-Disposition: form-data; name="size"', b"512x512"),
        ('Content-Disposition: form-data; name="background"', b"true"),
        ('Content-Disposition: form-data; name="image"; filename="image.png"\r\nContent-Type: image/png', b"\x89PNG\r\n\x1a\n"),
    ]


@pytest.mark.parametrize(("media", "name", "kind"), [
    (PNG, "image.png", "image/png"), (JPEG, "image.jpg", "image/jpeg"), (GIF, "image.gif", "image/gif"),
    (WEBP, "image.webp", "image/webp"), (BMP, "image.bmp", "image/bmp"),
    (Media("image", "data:image/tiff;base64,SUkqAA=="), "image.tiff", "image/tiff"),
])  # fmt: skip
def test_the_type_is_that_of_the_bytes(media: Media, name: str, kind: str) -> None:
    head, _ = parts(ImageEdit().encode(Turn(("a",), (media,), model="m")))[-1]
    assert f'filename="{name}"' in head and head.endswith(kind)


def test_an_image_at_a_url_is_a_plain_field() -> None:
    head, content = parts(ImageEdit().encode(Turn(("a",), (REMOTE,), model="m")))[-1]
    assert (head, content) == ('Content-Disposition: form-data; name="url"', b"http://there/street.png")


def test_several_images_are_a_list() -> None:
    heads = [head for head, _ in parts(ImageEdit().encode(Turn(("a",), (PNG, JPEG), model="m")))]
    assert sum('name="image[]"' in head for head in heads) == 2


def test_a_field_with_a_reserved_name_is_ignored_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    endpoint, extra = ImageEdit(), {"image": "x", "mask": "y", "prompt": "z", "url": "http://there"}
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            request = endpoint.encode(Turn(("a",), (PNG,), model="m", extra=extra))
    assert [content for head, content in parts(request) if 'name="prompt"' in head] == [b"a"]
    assert not any('name="mask"' in head or 'name="url"' in head for head, _ in parts(request))
    assert sorted(str(record.args[1]) for record in caplog.records if isinstance(record.args, tuple)) == sorted(extra)


@pytest.mark.parametrize(("turn", "why"), [
    (Turn((), (PNG,)), "needs one text"), (Turn(("a", "b"), (PNG,)), "2 texts"), (Turn(("a",)), "needs an image"),
    (Turn(("a",), (PNG, REMOTE)), "a URL beside other images"),
    (Turn(("a",), (Media("image", "data:image/png;base64,iVBO!"),)), "base64 .* is damaged"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        ImageEdit().encode(turn)
