"""A small pool for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_random_pool.dataset import RandomPool
from aiperf_dataset_random_pool.options import RandomPoolOptions


class RandomPoolContract(DatasetContract):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "pool"
        self.folder.mkdir()
        for name in ("query", "passages"):
            (self.folder / f"{name}.jsonl").write_text("".join(f'{{"text": "{name} {n}"}}\n' for n in range(50)))

    def make(self, entries: int, seed: int) -> RandomPool:
        capabilities = Capabilities(system_message=True, multi_turn=True)
        return RandomPool(RandomPoolOptions(), DatasetContext(entries, seed, True, None, capabilities, self.folder))
