"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_single_turn.dataset import SingleTurn
from aiperf_dataset_single_turn.options import SingleTurnOptions


class SingleTurnContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "rows.jsonl"
        self.file.write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(5)))

    def make(self, entries: int, seed: int) -> SingleTurn:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return SingleTurn(SingleTurnOptions(), DatasetContext(entries, seed, True, None, capabilities, self.file))
