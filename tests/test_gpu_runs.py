"""Runs with GPUs: those of a simulator, and machines that have none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from ctypes.util import find_library
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program

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
    said = done.out + done.err + (done.artifacts / "logs" / "aiperf.log").read_text()
    assert done.code == 0 and not any(word in said for word in ("GPU", "gpu_", "dcgm", "127.0.0.1:2"))
    assert not list((done.artifacts / "journal").glob("telemetry-*"))


def test_energy_is_what_the_simulator_drew_in_the_phase(gpus: Simulator, tmp_path: Path) -> None:
    """A short phase, on a machine that may be busy: a sample's instant is known to some milliseconds."""
    aiperf, done, found, seconds = _sampled(gpus, tmp_path, "--request-rate", 20, "--request-count", 40, "--slice-duration", 1,
        within=0.04)  # fmt: skip
    errors = [each["labels"] for each in _source(done)["series"] if each["name"] == "nvidia_xid_errors"]
    assert {(each["gpu"], each["code"]) for each in errors} == {("0", "31"), ("1", "0")}
    _check_results(done, found, seconds)
    reported = aiperf("report", done.artifacts)
    assert "Total GPU Energy (J)" in reported.out and "GPU 1 NVIDIA H100 80GB HBM3 MIG instance 4" in reported.out
    assert aiperf("validate", done.artifacts).code == 0


@pytest.mark.long
@pytest.mark.parametrize("rate", [3, 8, 20])
def test_energy_of_a_longer_phase_is_exact_to_one_percent(gpus: Simulator, tmp_path: Path, rate: int) -> None:
    _sampled(gpus, tmp_path, "--request-rate", rate, "--benchmark-duration", 15, within=0.01)


def _sampled(
    gpus: Simulator, folder: Path, *load: str | float, within: float
) -> tuple[Program, Done, float, float]:  # fmt: skip
    """A run with the GPUs of the simulator, which a file names: the energy of its phase in J, and its length in s.

    The phase's edges are in the wall clock, and the simulator tells the exact energies until these instants.
    """
    (folder / "run.yaml").write_text(f"benchmark: {{gpuTelemetry: {{collector: dcgm, urls: ['{gpus.url}/dcgm']}}}}\n")
    aiperf = Program(folder, gpus=True)
    aiperf.environment["AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"] = ""
    done = aiperf(
        "profile", "--config", "run.yaml", *LOAD, "--url", gpus.url, "--arrival-pattern", "constant", "--concurrency", 8,
        "--gpu-cost-per-hour", 2.5, *load,
    )  # fmt: skip
    assert done.code == 0, done.err
    (phase,) = done.json()["phases"]
    edges = [_monotonic_ns(phase[name]) for name in ("start_time", "end_time")]
    drawn = {uuid: end - begin for uuid, (begin, end) in gpus.joules(*edges).items()}
    found = {
        each["labels"]["uuid"]: each["stats"]["total"] * 1e6
        for each in _source(done)["series"]
        if each["name"] == "nvidia_energy_consumption"
    }
    assert found == pytest.approx(drawn, rel=within)
    return aiperf, done, sum(found.values()), (edges[1] - edges[0]) / 1e9


def _source(done: Done) -> dict[str, Any]:
    source: dict[str, Any] = next(each for each in done.json()["telemetry"] if each["source"] == "gpu_dcgm")
    return source


def _check_results(done: Done, joules: float, seconds: float) -> None:
    """Metrics, tables and files of a run of 40 requests with 8 tokens, whose two GPUs drew so much."""
    found = done.json()
    assert found["nvidia_total_gpu_energy"]["avg"] == pytest.approx(joules, rel=0.01)
    assert found["nvidia_average_gpu_power"]["avg"] == pytest.approx(joules / seconds, rel=0.01)
    assert found["nvidia_output_tokens_per_joule"]["avg"] == pytest.approx(320 / joules, rel=0.01)
    assert found["nvidia_energy_per_user"]["avg"] == pytest.approx(joules / 8, rel=0.01)
    assert found["cost_per_million_output_tokens"]["avg"] == pytest.approx(2.5 * 2 * seconds / 3600 / 320 * 1e6, rel=0.01)
    (gpus,) = (each["gpus"] for each in found["telemetry_data"]["endpoints"].values())
    assert list(gpus) == ["gpu_0", "gpu_1_mig_3", "gpu_1_mig_4"]
    metrics = gpus["gpu_0"]["metrics"]
    assert metrics["nvidia_xid_errors"] == {"unit": "", "codes": [31]} and metrics["nvidia_sm_clock"]["p50"] == 1980
    assert len(metrics["nvidia_power_usage"]["timeslices"]) == len(_slices(done))
    lines = done.lines("gpu_telemetry_export.jsonl")
    assert {(each["gpu_index"], each.get("mig_instance")) for each in lines} == {(0, None), (1, "3"), (1, "4")}
    assert lines[0]["telemetry_data"]["nvidia_xid_errors"] == 31.0
    assert {"GPU 0 NVIDIA H100 80GB HBM3", "GPUs in all"} <= {row.partition(" on ")[0].strip() for row in done.out.splitlines()}


def _slices(done: Done) -> list[object]:
    slices: list[object] = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    return slices


def _monotonic_ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e9) - time.time_ns() + time.monotonic_ns()
