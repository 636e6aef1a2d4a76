"""What evalscope 1.14.1 makes of a run of its AgentX scenario.

AIPERF_EVALSCOPE names the Python of an environment of its own: ``pip install evalscope==1.14.1``, and a directory
``aiperf-0.12.0.dist-info`` beside it whose METADATA has the name and version that evalscope asks for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agentx_corpus import FILE, corpus
from aiperf_command_simulate.testing import Simulator
from test_agentx_runs import R22, line

EVALSCOPE = os.environ.get("AIPERF_EVALSCOPE", "")
pytestmark = pytest.mark.skipif(not EVALSCOPE, reason="AIPERF_EVALSCOPE names no Python with evalscope")
SCRIPT = Path(__file__).with_name("reader_of_evalscope.py")


def read(mode: str, folder: Path, simulator: Simulator) -> dict[str, Any]:
    """The summary that evalscope makes of a run in *folder*, in its *mode*."""
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / FILE).write_bytes(corpus(6))
    words = line(R22, folder, simulator, benchmark_duration=3)
    command = [sys.executable, "-m", "aiperf", *words, "--no-server-metrics", "--no-gpu-telemetry"]
    given = [EVALSCOPE, str(SCRIPT), mode, str(folder / "corpus" / FILE), str(folder / "artifacts"), *command]
    (folder / "artifacts").mkdir()
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = [each for each in done.stdout.splitlines() if each.startswith("SUMMARY ")]
    summary: dict[str, Any] = json.loads(told.removeprefix("SUMMARY "))
    return summary


def test_evalscope_takes_a_run_as_completed(tmp_path: Path, simulator: Simulator) -> None:
    summary = read("smoke", tmp_path / "smoke", simulator)
    assert summary["status"] == "completed" and summary["error_summary"] == []
    assert summary["aiperf_submission_valid"] is False
    assert summary["aiperf_submission_invalid_reasons"] == ["unsafe_override"]
    assert summary["aiperf_schema_version"] == "1.5" and summary["submission_valid"] is False
    for name in ("request_throughput", "time_to_first_token", "inter_token_latency", "request_latency", "request_count"):
        assert summary["metrics"][name]["avg"] > 0, name


def test_evalscope_revalidates_a_known_file(tmp_path: Path, simulator: Simulator) -> None:
    summary = read("benchmark", tmp_path / "benchmark", simulator)
    assert summary["mirror_revalidated"] is True and summary["submission_valid"] is True
