"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_multi_turn.dataset import MultiTurn
from aiperf_dataset_multi_turn.options import MultiTurnOptions


class MultiTurnContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "rows.jsonl"
        self.file.write_text("".join(f'{{"turns": [{{"text": "row {n}"}}, {{"text": "more"}}]}}\n' for n in range(5)))

    def make(self, entries: int, seed: int) -> MultiTurn:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return MultiTurn(MultiTurnOptions(), DatasetContext(entries, seed, True, None, capabilities, self.file))
