"""The NV-CLIP dialect: texts and images in one batch out, a vector for each back."""

from __future__ import annotations

from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.vectors import VECTOR_NUMBERS, count_inputs, inputs_request, read_embeddings, without_pictures


class NvClip(Endpoint):
    """``POST /v1/embeddings``.  Images are ``data:`` URIs, which the build makes of files and URLs."""

    capabilities = Capabilities(
        path="/v1/embeddings", tokenizes_input=True, media_in=("image",), inline_media=True, title="Embeddings Metrics"
    )
    numbers = VECTOR_NUMBERS

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn: its texts, then its images.

        Raises:
            BadDataset: The turn has other media than images, earlier messages, or nothing.
        """
        images = [media.value for media in turn.media if media.kind == "image"]
        if len(images) < len(turn.media) or turn.history:
            raise BadDataset("nvclip takes texts and images, no other media and no earlier messages")
        return inputs_request(self.path(streaming=False), turn, [*turn.texts, *images])

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return without_pictures(prompt_of(request.body))

    def items_of(self, body: bytes) -> int | None:
        return count_inputs(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_embeddings("nvclip", event)
