"""The embeddings dialect: a batch of texts out, a vector for each back."""

from __future__ import annotations

from aiperf import Capabilities, Delta
from aiperf_dialects.vectors import VECTOR_NUMBERS, TextInputs, read_embeddings


class Embeddings(TextInputs):
    """``POST /v1/embeddings``."""

    capabilities = Capabilities(path="/v1/embeddings", tokenizes_input=True, title="Embeddings Metrics")
    dialect = "embeddings"
    hints = ("use --endpoint-type chat_embeddings or nim_embeddings",)
    numbers = VECTOR_NUMBERS

    def decode(self, event: bytes) -> Delta | None:
        return read_embeddings(self.dialect, event)
