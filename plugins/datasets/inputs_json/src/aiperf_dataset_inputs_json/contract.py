"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_inputs_json import InputsJson


class InputsJsonContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "inputs.json"
        rows = [f'{{"session_id": "s{n}", "payloads": [{{"prompt": "{n}"}}, {{"prompt": "x"}}]}}' for n in range(5)]
        self.file.write_text(f'{{"data": [{", ".join(rows)}]}}')

    def make(self, entries: int, seed: int) -> InputsJson:
        return InputsJson(None, DatasetContext(entries, seed, True, None, Capabilities(multi_turn=True), self.file))
