"""vLLM's pooling dialect: a batch of texts out, a vector for each, or for each of its tokens, back."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta
from aiperf.sdk.endpoint import decoded
from aiperf_dialects.vectors import VECTOR_NUMBERS, TextInputs, vectors
from msgspec import Struct
from msgspec.structs import replace


class _Pooled(Struct):
    data: list[float | list[float]] | str


class _Answer(Struct):
    data: list[_Pooled]
    usage: Any = None


_read = msgspec.json.Decoder(_Answer).decode


class Pooling(TextInputs):
    """``POST /pooling``.

    Base64 doesn't tell a vector for the text from vectors for its tokens, so its length is not compared.
    """

    capabilities = Capabilities(path="/pooling", tokenizes_input=True, title="Pooling Metrics")
    dialect = "pooling"
    numbers = VECTOR_NUMBERS

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        answer = decoded(self.dialect, _read, event)
        flat: list[list[float] | str] = []
        for each in answer.data:
            rows = [row for row in each.data if isinstance(row, list)]
            if rows and len(rows) != len(each.data):
                raise BadResponse("pooling: numbers beside lists of numbers", raw=event)
            flat += rows or [each.data]  # type: ignore[list-item]  # without rows it is numbers, or base64
        if any(isinstance(each, str) for each in flat):
            for vector in flat:
                vectors(self.dialect, [vector], None, event)
            return Delta(usage=answer.usage, items=len(answer.data))
        return replace(vectors(self.dialect, flat, answer.usage, event), items=len(answer.data))
