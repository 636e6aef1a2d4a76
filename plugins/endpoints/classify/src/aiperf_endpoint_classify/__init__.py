"""vLLM's classification dialect: a batch of texts out, probabilities of classes for each back."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadDataset, BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt, decoded
from aiperf.sdk.metric import PluginUnit
from aiperf.sdk.prompts import prompt_of
from aiperf.sdk.vectors import count_inputs, inputs_request
from msgspec import Struct


class _Classes(Struct):
    probs: list[float]


class _Answer(Struct):
    data: list[_Classes]
    usage: dict[str, Any] | None = None


_read = msgspec.json.Decoder(_Answer).decode


class Classify(Endpoint):
    """``POST /classify``."""

    capabilities = Capabilities(path="/classify", tokenizes_input=True, title="Classification Metrics")
    numbers = {"items": PluginUnit("classifications")}

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has media or earlier messages, or no text.
        """
        if turn.media or turn.history:
            raise BadDataset("classify takes texts, no media and no earlier messages")
        return inputs_request(self.path(streaming=False), turn, turn.texts)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def items_of(self, body: bytes) -> int | None:
        return count_inputs(body)

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        answer = decoded("classify", _read, event)
        if not all(each.probs for each in answer.data):
            raise BadResponse("classify: a text without probabilities", raw=event)
        return Delta(usage=answer.usage, items=len(answer.data))
