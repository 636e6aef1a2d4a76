"""vLLM's classification dialect: a batch of texts out, probabilities of classes for each back.

Two other published forms of the answer are read, too: lists of ``{"label", "score"}``, a list for each text (pipelines of
transformers, Hugging Face's endpoints), and one such list alone, which is of one text (``/predict`` of Text Embeddings
Inference).
"""

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
    usage: Any = None


class _Class(Struct):
    label: str
    score: float


_read = msgspec.json.Decoder(_Answer).decode
_read_lists = msgspec.json.Decoder(list[list[_Class]]).decode
_read_list = msgspec.json.Decoder(list[_Class]).decode


class Classify(TextInputs):
    """``POST /classify``."""

    capabilities = Capabilities(path="/classify", tokenizes_input=True, title="Classification Metrics")
    dialect = "classify"
    numbers = {"items": PluginUnit("classifications")}

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        if event.lstrip()[:1] == b"[":
            return self._lists(event)
        answer = decoded(self.dialect, _read, event)
        if not all(each.probs for each in answer.data):
            raise BadResponse("classify: a text without probabilities", raw=event)
        return Delta(usage=answer.usage, items=len(answer.data))

    def _lists(self, event: bytes) -> Delta:
        """The classes of each text in a list of their own, or those of one text."""
        if event.lstrip()[1:].lstrip()[:1] == b"{":
            return Delta(items=int(bool(decoded(self.dialect, _read_list, event))))
        texts = decoded(self.dialect, _read_lists, event)
        if not all(texts):
            raise BadResponse("classify: a text without probabilities", raw=event)
        return Delta(items=len(texts))
