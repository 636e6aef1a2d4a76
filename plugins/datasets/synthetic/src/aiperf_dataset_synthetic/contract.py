"""Tokenizers of bytes and of words for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract, Words

from aiperf_dataset_synthetic.dataset import Synthetic
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


class WordTokens(Words):
    """A word is a token; its id is its place in a growing list."""

    def __init__(self) -> None:
        super().__init__()
        self._words: list[str] = []
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        for word in text.split():
            if word not in self._ids:
                self._ids[word] = len(self._words)
                self._words.append(word)
        return [self._ids[word] for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._words[number] for number in ids)


class SyntheticContract(DatasetContract):
    def make(self, entries: int, seed: int) -> Synthetic:
        can = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)
        options = SyntheticOptions()
        return Synthetic(options, DatasetContext(entries, seed, True, Bytes(), can))
