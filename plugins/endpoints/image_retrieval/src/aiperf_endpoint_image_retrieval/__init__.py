"""The NIM image retrieval dialect: images out, the detections in each back."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Media, Turn
from aiperf.sdk.endpoint import decoded
from aiperf.sdk.metric import PluginUnit
from msgspec import Struct

_FORMATS = ("data:image/png", "data:image/jpeg")
PROBE_PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAD0lEQVR42mP4jwMwDC0JALoev0GJ6La7AAAAAElFTkSuQmCC"
)
"""A white image of 8 x 8 pixels."""


class _Answer(Struct):
    data: list[dict[str, Any]]
    usage: Any = None


_read = msgspec.json.Decoder(_Answer).decode


class ImageRetrieval(Endpoint):
    """``POST /v1/infer``.  Images are ``data:`` URIs, which the build makes of files and URLs."""

    capabilities = Capabilities(path="/v1/infer", media_in=("image",), inline_media=True, title="Image Retrieval Metrics")
    numbers = {"items": PluginUnit("results")}

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has texts, no image, or one that is neither PNG nor JPEG.
        """
        if turn.texts and turn.payload is None:
            raise BadDataset("image_retrieval takes images alone, and the turn has a text", "remove text from the rows")
        if not turn.media and turn.payload is None:
            raise BadDataset("image_retrieval needs an image, and the turn has none")
        for media in turn.media:
            if not media.value.startswith(_FORMATS):
                raise BadDataset(f"image_retrieval takes PNG and JPEG images, not {media.value[:40]!r}")
        images = [{"type": "image_url", "url": media.value} for media in turn.media]
        return HttpRequest(self.path(streaming=False), msgspec.json.encode({"input": images, **turn.extra}))

    def probe(self) -> Turn:
        return Turn((), (Media("image", PROBE_PNG),))

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        answer = decoded("image_retrieval", _read, event)
        return Delta(usage=answer.usage, items=len(answer.data))
