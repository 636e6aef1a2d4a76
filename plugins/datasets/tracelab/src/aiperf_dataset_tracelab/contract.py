"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_synthetic.contract import WordTokens

from aiperf_dataset_tracelab.dataset import Tracelab
from aiperf_dataset_tracelab.options import TracelabOptions


def sample_round(session: str, second: int, tokens: int, prefix: int = 0, **more: Any) -> dict[str, Any]:
    """A round that was sent *second* s after the hour and answered a second later."""
    events = [{"event_type": kind, "timestamp": f"2026-01-01T00:00:{at:02}Z"}
              for kind, at in (("user_message", second), ("text", second + 1))]  # fmt: skip
    return {
        "session_id": session, "round_index": second, "input_tokens_total": tokens, "prefix_tokens": prefix,
        "newly_append_tokens": tokens - prefix, "timing_events": events, **more,
    }  # fmt: skip


def sample_rounds(session: str) -> list[dict[str, Any]]:
    """Rows of a session with a subagent, which its second round waits for."""
    stamps = {"emitted_at": "2026-01-01T00:00:01Z", "result_at": "2026-01-01T00:00:21Z"}
    call = {"tool_name": "Task", **stamps, "tool_wall_latency_ms": 20000}
    return [
        sample_round(session, 0, 150, tools=[call], user=session), sample_round(session, 25, 250, 150, user=session),
        sample_round(f"{session}-x", 2, 64, user=session),
    ]  # fmt: skip


class TracelabContract(DatasetContract):
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
        self.file = tmp_path / "rounds.jsonl"
        rows = (row for number in range(5) for row in sample_rounds(f"s{number}"))
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(self, entries: int, seed: int) -> Tracelab:
        capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)
        return Tracelab(TracelabOptions(), DatasetContext(entries, seed, True, WordTokens(), capabilities, self.file))
