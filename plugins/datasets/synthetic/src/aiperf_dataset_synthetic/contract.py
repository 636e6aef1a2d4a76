"""A tokenizer of bytes for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_synthetic import Synthetic
from aiperf_dataset_synthetic.options import SyntheticOptions


class Bytes:
    """One token per byte, so cuts may split characters."""

    name = "bytes"
    size = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode(errors="replace")

    def count(self, text: str) -> int:
        return len(self.encode(text))


class SyntheticContract(DatasetContract):
    def make(self, entries: int, seed: int) -> Synthetic:
        can = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)
        options = SyntheticOptions()
        return Synthetic(options, DatasetContext(entries, seed, True, Bytes(), can))
