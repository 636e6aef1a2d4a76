"""OpenAI's image edits: a prompt and images out as a form; images back, whole, or in a stream with partial ones before."""

from __future__ import annotations

from typing import Any

from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Media, Turn
from aiperf.sdk.endpoint import Reader
from aiperf_dialects.forms import PNG_8X8, FormFields, image_file
from aiperf_dialects.images import IMAGE_NUMBERS, ImageReader
from aiperf_dialects.turns import one_text

_RESERVED = ("prompt", "image", "image[]", "url", "mask")
_REMOTE = ("http://", "https://")


class ImageEditReader(ImageReader):
    dialect = "image_edit"


class ImageEdit(Endpoint):
    """``POST /v1/images/edits``.

    One image is the file ``image``, several are files ``image[]``; one at an http(s) URL is the field ``url``.
    """

    capabilities = Capabilities(
        path="/v1/images/edits", streaming=True, tokenizes_input=True, media_in=("image",), media_out=("image",),
        inline_media=True, keeps_urls=True, forms=True, title="Image Edit Metrics",
    )  # fmt: skip
    numbers = IMAGE_NUMBERS

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._form = FormFields("image_edit", self.capabilities.path, _RESERVED)

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has another number of texts than one, no image, or a URL beside other images.
        """
        fields: dict[str, Any] = {
            "prompt": one_text("image_edit", turn), "model": turn.model, "response_format": "b64_json", "n": 1,
        }  # fmt: skip
        if turn.stream:
            fields["stream"] = True
        images, remote = turn.media, [media for media in turn.media if media.value.startswith(_REMOTE)]
        if not images and turn.payload is None:
            hint = "give each row one image, or make them with --image-width-mean and --image-height-mean"
            raise BadDataset("image_edit needs an image, and the turn has none", hint)
        if remote and len(images) > 1:
            raise BadDataset("image_edit takes one URL or several files, and the turn has a URL beside other images")
        if remote:
            return self._form.request(turn, {**fields, "url": remote[0].value})
        name = "image" if len(images) < 2 else "image[]"
        return self._form.request(turn, fields, [image_file(media, name) for media in images])

    def probe(self) -> Turn:
        return Turn(("Hello",), (Media("image", PNG_8X8),))

    def reader(self) -> Reader:
        return ImageEditReader()

    def decode(self, event: bytes) -> Delta | None:
        return ImageEditReader().each(event)
