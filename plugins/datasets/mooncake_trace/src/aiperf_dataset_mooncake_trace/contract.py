"""A small trace for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract, Words

from aiperf_dataset_mooncake_trace import MooncakeTrace
from aiperf_dataset_mooncake_trace.options import MooncakeTraceOptions


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


class MooncakeTraceContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "trace.jsonl"
        self.file.write_text("".join(f'{{"timestamp": {n}, "input_length": {10 + n}}}\n' for n in range(5)))

    def make(self, entries: int, seed: int) -> MooncakeTrace:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return MooncakeTrace(MooncakeTraceOptions(), DatasetContext(entries, seed, True, WordTokens(), capabilities, self.file))
