"""NIM's image retrieval: a bounding box in each image."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Piece, Usage, Writer, decoded, part_bytes, to_json
from aiperf_command_simulate.dialects.vectors import count
from aiperf_command_simulate.http1 import Request

_FORMATS = ("data:image/png", "data:image/jpeg")
_BOX = {"x_min": 0.1, "y_min": 0.2, "x_max": 0.4, "y_max": 0.5, "confidence": 0.9}


class _Body(Struct):
    input: list[dict[str, Any]]


_read = msgspec.json.Decoder(_Body)


class _Detections(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        data = [{"index": index, "bounding_boxes": {"table": [_BOX]}} for index in range(count(self.opened, pieces))]
        return to_json({"data": data})


class Infer(Dialect):
    paths = ("/v1/infer",)

    def read(self, request: Request) -> Ask:
        images = decoded(_read, request, "image retrieval request").input
        for image in images:
            if image.get("type") != "image_url" or not str(image.get("url", "")).startswith(_FORMATS):
                raise AskError("input must be image_url parts with PNG or JPEG images as data: URIs")
        if not images:
            raise AskError('"input" must not be empty')
        return Ask(model="", prompts=tuple(map(part_bytes, images)), prefill_only=True)

    def writer(self, opened: Opened) -> Writer:
        return _Detections(opened)


ROUTES = (Infer(),)
