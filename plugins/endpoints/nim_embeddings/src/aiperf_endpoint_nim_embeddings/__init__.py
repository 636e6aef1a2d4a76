"""The NIM embeddings dialect: texts, images, or texts with an image each out, vectors back."""

from __future__ import annotations

from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.vectors import VECTOR_NUMBERS, count_inputs, inputs_request, read_embeddings, without_pictures


class NimEmbeddings(Endpoint):
    """``POST /v1/embeddings``; ``input_type``, ``truncate`` and others come from extra inputs.

    Images are ``data:`` URIs, which the build makes of files and URLs.
    """

    capabilities = Capabilities(
        path="/v1/embeddings", tokenizes_input=True, media_in=("image",), inline_media=True, title="NIM Embeddings Metrics"
    )
    numbers = VECTOR_NUMBERS

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn: each input is a text, an image, or a text and an image with a space between.

        Raises:
            BadDataset: The turn has other media than images, earlier messages, or another number of images than texts.
        """
        images = [media.value for media in turn.media if media.kind == "image"]
        if len(images) < len(turn.media) or turn.history:
            raise BadDataset("nim_embeddings takes texts and images, no other media and no earlier messages")
        if images and turn.texts and len(images) != len(turn.texts):
            raise BadDataset(
                f"nim_embeddings pairs texts with images, and the turn has {len(turn.texts)} texts and {len(images)} images",
                "give as many of one as of the other, or one of them alone",
            )
        pairs = [f"{text} {image}" for text, image in zip(turn.texts, images, strict=False)]
        return inputs_request(self.path(streaming=False), turn, pairs or images or turn.texts)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return without_pictures(prompt_of(request.body))

    def items_of(self, body: bytes) -> int | None:
        return count_inputs(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_embeddings("nim_embeddings", event)
