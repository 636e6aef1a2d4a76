"""vLLM's classification dialect: a batch of texts out, probabilities of classes for each back."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta
from aiperf.sdk.endpoint import decoded
from aiperf.sdk.metric import PluginUnit
from aiperf_dialects.vectors import TextInputs
from msgspec import Struct


class _Classes(Struct):
    probs: list[float]


class _Answer(Struct):
    data: list[_Classes]
    usage: dict[str, Any] | None = None


_read = msgspec.json.Decoder(_Answer).decode


class Classify(TextInputs):
    """``POST /classify``."""

    capabilities = Capabilities(path="/classify", tokenizes_input=True, title="Classification Metrics")
    dialect = "classify"
    numbers = {"items": PluginUnit("classifications")}

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        answer = decoded(self.dialect, _read, event)
        if not all(each.probs for each in answer.data):
            raise BadResponse("classify: a text without probabilities", raw=event)
        return Delta(usage=answer.usage, items=len(answer.data))
