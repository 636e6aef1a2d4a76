"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_dag_jsonl.dataset import DagJsonl
from aiperf_dataset_dag_jsonl.options import DagJsonlOptions


class DagJsonlContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "trees.jsonl"
        said = [{"messages": [{"role": "user", "content": text}]} for text in ("plan", "merge")]
        rows = [
            *({"session_id": f"root{n}", "turns": [{**said[0], "spawns": [f"child{n}"]}, said[1]]} for n in range(5)),
            *({"session_id": f"child{n}", "turns": [{**said[0], "max_tokens": 8}]} for n in range(5)),
        ]
        self.file.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))

    def make(self, entries: int, seed: int) -> DagJsonl:
        capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)
        return DagJsonl(DagJsonlOptions(), DatasetContext(entries, seed, True, None, capabilities, self.file))
