"""A small trace for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_baseten_trace.dataset import BasetenTrace
from aiperf_dataset_baseten_trace.options import BasetenTraceOptions


def recorded(second: float, prompt: str = "hello", tokens: int = 5, **columns: Any) -> dict[str, Any]:
    """A row at a second after an instant."""
    start = 1_700_000_000_000 + int(second * 1000)
    return {"timestamp_start_unix_ms": start, "prompt": prompt, "input_tokens": 2, "output_tokens": tokens, **columns}


class BasetenTraceContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        self.file = tmp_path / "trace.parquet"
        rows = [recorded(n, f"prompt {n}", provided_session_id="s" if n % 2 else None) for n in range(5)]
        parquet.write_table(pyarrow.Table.from_pylist(rows), self.file)

    def make(self, entries: int, seed: int) -> BasetenTrace:
        context = DatasetContext(entries, seed, True, None, Capabilities(system_message=True, multi_turn=True), self.file)
        return BasetenTrace(BasetenTraceOptions(), context)
