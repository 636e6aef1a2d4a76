"""The embeddings dialect: a batch of texts out, a vector for each back."""

from __future__ import annotations

from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf.sdk.prompts import prompt_of
from aiperf.sdk.vectors import VECTOR_NUMBERS, count_inputs, inputs_request, read_embeddings


class Embeddings(Endpoint):
    """``POST /v1/embeddings``."""

    capabilities = Capabilities(path="/v1/embeddings", tokenizes_input=True, title="Embeddings Metrics")
    numbers = VECTOR_NUMBERS

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has images or earlier messages, or no text.
        """
        if turn.media or turn.history:
            what = turn.media[0].kind if turn.media else "earlier messages"
            raise BadDataset(f"embeddings takes texts, not {what}", "use --endpoint-type chat_embeddings or nim_embeddings")
        return inputs_request(self.path(streaming=False), turn, turn.texts)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def items_of(self, body: bytes) -> int | None:
        return count_inputs(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_embeddings("embeddings", event)
