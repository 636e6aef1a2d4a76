"""Runs with GPUs: those of a simulator, and machines that have none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from ctypes.util import find_library
from datetime import datetime
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program

LOAD = ("--model", "m", "--streaming", "--tokenizer", "builtin", "--isl", 20, "--osl", 8, "--ui", "none")


@pytest.fixture(scope="module")
def gpus() -> Iterator[Simulator]:
    with running(gpus=2, mig=2, gpu_xid=31) as simulator:
        yield simulator


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["http://127.0.0.1:1"], "http://127.0.0.1:1/metrics: Connection refused"),
        (["pynvml"], "--gpu-telemetry pynvml: "),
        ([], "--gpu-telemetry: no DCGM exporter listens at 127.0.0.1:2"),
    ],
)
def test_a_machine_without_gpus_is_said_and_the_run_goes_on(
    gpus: Simulator, tmp_path: Path, words: list[str], sentence: str
) -> None:
    """Recipe R14."""
    if words == ["pynvml"] and find_library("nvidia-ml"):
        pytest.skip("this machine has a driver")
    aiperf = Program(tmp_path, gpus=True)
    aiperf.environment["AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"] = "127.0.0.1:2"
    done = aiperf("profile", *LOAD, "--url", gpus.url, "--request-count", 3, "--gpu-telemetry", *words)
    assert done.code == 0 and sentence in done.err


def test_a_run_that_asks_nothing_says_nothing_of_gpus(gpus: Simulator, tmp_path: Path) -> None:
    aiperf = Program(tmp_path, gpus=True)
    aiperf.environment["AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"] = "127.0.0.1:2"
    done = aiperf("profile", *LOAD, "--url", gpus.url, "--request-count", 3)
    assert done.code == 0 and "gpu" not in (done.out.replace(str(tmp_path), "") + done.err).lower()
    assert not list((done.artifacts / "journal").glob("telemetry-*"))
    assert "gpu" not in (done.artifacts / "logs" / "aiperf.log").read_text().replace(str(tmp_path), "").lower()


def test_energy_is_what_the_simulator_drew_in_the_phase(gpus: Simulator, tmp_path: Path) -> None:
    """A file names the exporter; the phase's edges are in the journal's clock, which is the simulator's."""
    (tmp_path / "run.yaml").write_text(f"benchmark: {{gpuTelemetry: {{collector: dcgm, urls: ['{gpus.url}/dcgm']}}}}\n")
    aiperf = Program(tmp_path, gpus=True)
    aiperf.environment["AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"] = ""
    done = aiperf(
        "profile", "--config", "run.yaml", *LOAD, "--url", gpus.url, "--request-rate", 20, "--request-count", 40,
        "--arrival-pattern", "constant",
    )  # fmt: skip
    assert done.code == 0, done.err
    (source,) = (each for each in done.json()["telemetry"] if each["source"] == "gpu_dcgm")
    (phase,) = done.json()["phases"]
    edges = [_monotonic_ns(phase[name]) for name in ("start_time", "end_time")]
    drawn = {uuid: end - begin for uuid, (begin, end) in gpus.joules(*edges).items()}
    found = {
        each["labels"]["uuid"]: each["stats"]["total"] * 1e6
        for each in source["series"]
        if each["name"] == "nvidia_energy_consumption"
    }
    assert found == pytest.approx(drawn, rel=0.01)
    errors = [each["labels"] for each in source["series"] if each["name"] == "nvidia_xid_errors"]
    assert {(each["gpu"], each["code"]) for each in errors} == {("0", "31"), ("1", "0")}


def _monotonic_ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e9) - time.time_ns() + time.monotonic_ns()
