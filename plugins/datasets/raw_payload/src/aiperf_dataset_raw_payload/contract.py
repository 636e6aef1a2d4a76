"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_raw_payload import RawPayload


class RawPayloadContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "bodies.jsonl"
        row = '{{"model": "m", "messages": [{{"role": "user", "content": "{}"}}]}}\n'
        self.file.write_text("".join(map(row.format, range(5))))

    def make(self, entries: int, seed: int) -> RawPayload:
        return RawPayload(None, DatasetContext(entries, seed, True, None, Capabilities(multi_turn=True), self.file))
