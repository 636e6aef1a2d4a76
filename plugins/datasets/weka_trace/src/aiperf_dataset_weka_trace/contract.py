"""A small corpus for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract, check_row
from aiperf_dataset_synthetic.contract import WordTokens

from aiperf_dataset_weka_trace.dataset import WekaTrace
from aiperf_dataset_weka_trace.hub import WekaHub, WekaHubOptions
from aiperf_dataset_weka_trace.options import WekaOptions


def sample_trace(name: str, offset: int = 0) -> dict[str, Any]:
    """A trace with a subagent, which the root's second turn waits for."""
    call = {"type": "s", "model": "m", "out": 8}
    inner = {**call, "t": 2.5, "in": 64, "hash_ids": [offset + 9]}
    return {
        "id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [
            {**call, "t": 0, "in": 150, "hash_ids": [offset + 1, offset + 2], "api_time": 1},
            {"t": 2, "type": "subagent", "agent_id": "x", "subagent_type": "Explore", "duration_ms": 3000,
             "status": "completed", "models": ["m"], "requests": [inner]},
            {**call, "t": 9, "in": 214, "hash_ids": [offset + 1, offset + 2, offset + 3]},
        ],
    }  # fmt: skip


_CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


class _CorpusContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
        self.file = tmp_path / "traces.jsonl"
        self.file.write_text("".join(json.dumps(sample_trace(f"w{number}", 10 * number)) + "\n" for number in range(5)))


class WekaTraceContract(_CorpusContract):
    def make(self, entries: int, seed: int) -> WekaTrace:
        return WekaTrace(WekaOptions(), DatasetContext(entries, seed, True, WordTokens(), _CHAT, self.file))


class WekaHubContract(_CorpusContract):
    def make(self, entries: int, seed: int) -> WekaHub:
        name, row = "weka_hf", check_row("datasets", WekaHub).capabilities["names"]["weka_hf"]
        context = DatasetContext(entries, seed, True, WordTokens(), _CHAT, self.file, name, row)
        return WekaHub(WekaHubOptions(), context)
