"""What contaminated a run is found in runs of half a minute against the simulator, and nothing is found in clean ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program

pytestmark = pytest.mark.long
KINDS = {"warm_cache", "other_tenants", "clock_throttling", "cold_server", "server_queue"}
ENGINE = {"jitter": 0.1, "prefill_us_per_token": 40, "decode_ms": 20, "tokens": 32}
PACED = ("--request-rate", 6, "--benchmark-duration", 20)
CROWD = ("--concurrency", 10, "--request-count", 150)
CASES: dict[str, tuple[dict[str, Any], tuple[str | int, ...], set[str]]] = {
    "clean": ({"gpus": 2}, PACED, set()),
    "warm": ({}, PACED, {"warm_cache"}),
    "tenant": ({"tenant_rate": 0.6}, PACED, {"other_tenants"}),
    "clock": ({"gpus": 2, "slow_from_s": 10, "slow_for_s": 5, "slow_by": 1 / 0.85}, PACED, {"clock_throttling"}),
    "cold": ({"slow_for_s": 9, "slow_by": 1.5}, ("--request-rate", 8, "--benchmark-duration", 25), {"cold_server"}),
    "queue": ({"max_running": 8}, CROWD, {"server_queue"}),
    "queue and tenant": (
        {"max_running": 8, "tenant_rate": 1.0}, CROWD, {"server_queue", "other_tenants"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_each_live_run_has_its_findings_and_no_others(tmp_path: Path, case: str, seed: int) -> None:
    engine, load, kinds = CASES[case]
    with running(**ENGINE, **engine, seed=seed) as simulator:
        if case == "warm":  # another client sends the prompts of some later requests
            run(simulator, tmp_path / "before", seed, "--request-count", 40, "--concurrency", 8)
        findings = run(simulator, tmp_path / "run", seed, *load)
    found = {finding["kind"]: finding["sentence"] for finding in findings if finding["kind"] in KINDS}
    assert found.keys() == kinds, found


def run(simulator: Simulator, folder: Path, seed: int, *load: str | int) -> list[dict[str, Any]]:
    """The findings of a run against the simulator, and its GPUs."""
    folder.mkdir()
    aiperf = Program(folder, gpus=True, server_metrics=True)
    aiperf.environment["AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"] = ""
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 300, "--osl", 32,
        "--ui", "none", "--num-dataset-entries", 300, "--random-seed", seed,
        "--gpu-telemetry", f"{simulator.url}/dcgm", *load,
    )  # fmt: skip
    assert done.code == 0, done.err
    findings: list[dict[str, Any]] = done.json()["measurement"]["findings"]
    return findings
