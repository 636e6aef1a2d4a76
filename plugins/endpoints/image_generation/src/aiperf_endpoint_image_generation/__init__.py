"""OpenAI's image generation: a prompt out; images back, whole, or in a stream with partial ones before."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt, Reader
from aiperf_dialects.images import IMAGE_NUMBERS, ImageReader
from aiperf_dialects.prompts import prompt_of


class ImageGenerationReader(ImageReader):
    dialect = "image_generation"


class ImageGeneration(Endpoint):
    """``POST /v1/images/generations``."""

    capabilities = Capabilities(
        path="/v1/images/generations", streaming=True, tokenizes_input=True, media_out=("image",),
        title="Image Generation Metrics",
    )  # fmt: skip
    numbers = IMAGE_NUMBERS
    splices_text = True

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn: its first text is the prompt.

        Raises:
            BadDataset: The turn has no text.
        """
        if not turn.texts and turn.payload is None:
            raise BadDataset("image_generation needs a text, the prompt, and the turn has none")
        prompt = turn.texts[0] if turn.texts else ""
        body: dict[str, Any] = {"prompt": prompt, "model": turn.model, "response_format": "b64_json", "n": 1}
        if turn.stream:
            body["stream"] = True
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body | turn.extra))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def reader(self) -> Reader:
        return ImageGenerationReader()

    def decode(self, event: bytes) -> Delta | None:
        return ImageGenerationReader().each(event)
