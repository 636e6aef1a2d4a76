"""A small table for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_synthetic.contract import WordTokens

from aiperf_dataset_burst_gpt_trace.dataset import BurstGptTrace
from aiperf_dataset_burst_gpt_trace.options import BurstGptTraceOptions


class BurstGptTraceContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "trace.csv"
        self.file.write_text("Timestamp,Request tokens,Response tokens\n" + "".join(f"{n},{10 + n},3\n" for n in range(5)))

    def make(self, entries: int, seed: int) -> BurstGptTrace:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return BurstGptTrace(BurstGptTraceOptions(), DatasetContext(entries, seed, True, WordTokens(), capabilities, self.file))
