"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_speed_bench.dataset import SpeedBench
from aiperf_dataset_speed_bench.options import SpeedBenchOptions


def question(number: int, *texts: str, category: str = "math") -> dict[str, Any]:
    """A row with messages of a user."""
    messages = [{"role": "user", "content": text} for text in texts]
    return {"question_id": f"{number:032}", "category": category, "messages": messages}


class SpeedBenchContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "qualitative.jsonl"
        self.file.write_text("".join(json.dumps(question(n, f"what is {n}", "why")) + "\n" for n in range(5)))

    def make(self, entries: int, seed: int) -> SpeedBench:
        capabilities, row = Capabilities(multi_turn=True), {"file": "qualitative.jsonl", "category": "math"}
        context = DatasetContext(entries, seed, True, None, capabilities, self.file, "speed_bench_math", row)
        return SpeedBench(SpeedBenchOptions(), context)
