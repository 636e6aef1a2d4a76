"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_exgentic.dataset import Exgentic
from aiperf_dataset_exgentic.options import ExgenticOptions


def call(second: int, text: str = "hi", **attributes: Any) -> dict[str, Any]:
    """A span of a second that asks a model; *attributes*: further ones, with ``__`` for a dot behind ``gen_ai.``."""
    given = {
        "input__messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}]),
        "usage__input_tokens": 7, "usage__output_tokens": 5,
    } | attributes  # fmt: skip
    return {
        "type": "llm_call", "start_time": f"2025-01-01T00:00:{second:02}Z", "end_time": f"2025-01-01T00:00:{second + 1:02}Z",
        "attributes": {f"gen_ai.{key.replace('__', '.')}": value for key, value in given.items() if value is not None},
    }  # fmt: skip


def session(name: str, *spans: dict[str, Any], **columns: Any) -> dict[str, Any]:
    """A row."""
    return {"session_id": name, "harness": "tool_calling", "models": ["azure/gpt-4.1"], "spans": list(spans)} | columns


class ExgenticContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "agents.jsonl"
        given = [session(f"s{n}", call(0, f"question {n}"), call(3, "more")) for n in range(5)]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in given))

    def make(self, entries: int, seed: int) -> Exgentic:
        capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)
        return Exgentic(ExgenticOptions(), DatasetContext(entries, seed, True, None, capabilities, self.file))
