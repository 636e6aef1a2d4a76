"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_grpc_messages import GrpcMessages
from aiperf_dataset_grpc_messages.options import GrpcMessagesOptions


class GrpcMessagesContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "calls.jsonl"
        self.file.write_text("".join(f'{{"messages": [{{"text": "{number}"}}]}}\n' for number in range(5)))

    def make(self, entries: int, seed: int) -> GrpcMessages:
        return GrpcMessages(GrpcMessagesOptions(), DatasetContext(entries, seed, True, None, Capabilities(), self.file))
