"""A local copy for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract, check_row

from aiperf_dataset_public.dataset import Public
from aiperf_dataset_public.options import PublicOptions


class PublicContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "chats.json"
        said = [{"from": "human", "value": "What is rain?"}, {"from": "gpt", "value": "Water that falls."}]
        self.file.write_text(json.dumps([{"id": str(n), "conversations": said * 2} for n in range(5)]))

    def make(self, entries: int, seed: int) -> Public:
        name, row = "sharegpt", check_row("datasets", Public).capabilities["names"]["sharegpt"]
        context = DatasetContext(entries, seed, True, None, Capabilities(multi_turn=True), self.file, name, row)
        return Public(PublicOptions(), context)
