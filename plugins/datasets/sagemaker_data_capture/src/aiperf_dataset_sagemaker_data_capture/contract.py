"""A small capture for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_sagemaker_data_capture.dataset import SagemakerDataCapture
from aiperf_dataset_sagemaker_data_capture.options import SagemakerDataCaptureOptions


def captured(second: int, **body: Any) -> dict[str, Any]:
    """A row: a chat at a second of a minute."""
    data = json.dumps({"messages": [{"role": "user", "content": f"at {second}"}], **body})
    return {
        "captureData": {"endpointInput": {"encoding": "JSON", "data": data}},
        "eventMetadata": {"inferenceTime": f"2025-01-01T00:00:{second:02}Z"},
    }


class SagemakerDataCaptureContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "capture.jsonl"
        self.file.write_text("".join(json.dumps(captured(second)) + "\n" for second in range(5)))

    def make(self, entries: int, seed: int) -> SagemakerDataCapture:
        capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True)
        context = DatasetContext(entries, seed, True, None, capabilities, self.file)
        return SagemakerDataCapture(SagemakerDataCaptureOptions(), context)
