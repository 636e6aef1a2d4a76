"""What endpoints that make images share: reading of answers, whole and streamed, and the number of images in them."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aiperf import BadResponse
from aiperf.sdk.metric import Unit
from aiperf.sdk.model import Delta
from msgspec import Struct

from aiperf_dialects.growing import BatchReader

IMAGE_NUMBERS: Mapping[str, Unit] = MappingProxyType({"made_images": Unit.IMAGES})
"""The ``numbers`` of an endpoint that makes images: whole images in the answer; absent without."""
_URL_SAFE = str.maketrans("-_", "+/", " \t\r\n")


class Image(Struct):
    """An item of ``data``: its bytes, or where they are."""

    b64_json: str | None = None
    url: str | None = None


class ImageEvent(Struct):
    """A whole answer (``data``), or an event of a stream, which has one image."""

    type: str | None = None
    data: list[Image] | None = None
    b64_json: str | None = None
    url: str | None = None
    partial_image_index: int | None = None
    usage: Any = None


class ImageReader(BatchReader[ImageEvent]):
    """Reads one answer.  A subclass names its dialect.

    Of a stream, images of events named ``….completed`` are whole, and those of ``….partial_image`` are not; where events have
    neither name, one with ``partial_image_index`` is partial.  An image without bytes counts by its URL.
    """

    event_type = ImageEvent

    def __init__(self) -> None:
        self._made = 0

    def delta(self, event: ImageEvent, data: bytes) -> Delta | None:
        kind = event.type or ""
        partial = event.partial_image_index is not None and not kind.endswith(".completed")
        images = [Image(event.b64_json, event.url)] if event.data is None else event.data
        count = sum(self._is_image(image) for image in images)
        if not count and event.usage is None:
            return self.empty(data)
        if not (partial or kind.endswith(".partial_image")):
            self._made += count
        return Delta(usage=event.usage, items=count)

    def close(self) -> Delta | None:
        return Delta(extra={"made_images": self._made}) if self._made else None

    def _is_image(self, image: Image) -> bool:
        if not image.b64_json:
            return bool(image.url)
        text = image.b64_json
        if text.startswith("data:"):
            text = text.partition(",")[2]
        try:
            return bool(binascii.a2b_base64(text, strict_mode=True))
        except (binascii.Error, ValueError):  # ValueError: a character outside ASCII
            pass
        try:  # without padding, in lines, or of the alphabet for URLs
            text = text.translate(_URL_SAFE).rstrip("=")
            return bool(binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True))
        except (binascii.Error, ValueError) as error:
            message = f"{self.dialect}: the base64 of an image is damaged: {error}"
            raise BadResponse(message, raw=image.b64_json[:80].encode()) from error


__all__ = ["IMAGE_NUMBERS", "Image", "ImageEvent", "ImageReader"]
