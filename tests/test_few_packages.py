"""The kernel and one endpoint, with what a run needs and nothing else, installed from wheels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, projects
from program import Program

NEEDED = (
    "aiperf-core", "aiperf-dataset-synthetic", "aiperf-driver-standard", "aiperf-exporter-json", "aiperf-reducer-columns",
    "aiperf-schedule-standard", "aiperf-tokenizer-builtin", "aiperf-transport-sockets",
)  # fmt: skip


@pytest.mark.parametrize("endpoint", ["ollama"])
def test_the_kernel_and_one_endpoint_run(tmp_path: Path, simulator: Simulator, endpoint: str) -> None:
    wanted = (*NEEDED, f"aiperf-endpoint-{endpoint}")
    built = {name: folder for name, folder in projects().items() if name in {*wanted, "aiperf-dialects", "aiperf-rows"}}
    python = Shelf(tmp_path / "shelf", built).environment(tmp_path / "environment", wanted)
    done = Program(tmp_path, python=python)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", endpoint, "--streaming", "--tokenizer", "builtin",
        "--isl", 8, "--osl", 3, "--request-count", 4, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads((done.artifacts / "profile_export_aiperf.json").read_text())
    assert found["measurement"]["arrivals"]["completed"] == simulator.summary()["requests"] == 4
