"""A small trace for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_synthetic.contract import WordTokens

from aiperf_dataset_bailian_trace.dataset import BailianTrace
from aiperf_dataset_bailian_trace.options import BailianTraceOptions


class BailianTraceContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "trace.jsonl"
        row = '{{"chat_id": {0}, "parent_chat_id": {1}, "timestamp": {0}, "input_length": {2}, "output_length": 3}}\n'
        self.file.write_text("".join(row.format(n, n - 1 if n % 2 else -1, 10 + n) for n in range(9)))

    def make(self, entries: int, seed: int) -> BailianTrace:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return BailianTrace(BailianTraceOptions(), DatasetContext(entries, seed, True, WordTokens(), capabilities, self.file))
