"""A small trace for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_synthetic.contract import WordTokens

from aiperf_dataset_mooncake_trace.dataset import MooncakeTrace
from aiperf_dataset_mooncake_trace.options import MooncakeTraceOptions


class MooncakeTraceContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "trace.jsonl"
        self.file.write_text("".join(f'{{"timestamp": {n}, "input_length": {10 + n}}}\n' for n in range(5)))

    def make(self, entries: int, seed: int) -> MooncakeTrace:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return MooncakeTrace(MooncakeTraceOptions(), DatasetContext(entries, seed, True, WordTokens(), capabilities, self.file))
