"""Whole runs whose results go elsewhere, to receivers that are there and to others."""

import json
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from aiperf_exporter_otel.testing import Collector
from program import Done, Program

KEYS = {"MLFLOW_TRACKING_TOKEN": "token-of-mlflow", "WANDB_API_KEY": "0123456789abcdef" * 3, "AWS_SECRET_ACCESS_KEY": "s3-key"}


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    program.environment |= {**KEYS, "WANDB_MODE": "offline"}
    return program


def profile(aiperf: Program, simulator: Simulator, *words: str) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10, "--osl", 3,
        "--request-count", 6, "--ui", "none", "--verbose", *words,
    )  # fmt: skip


def keyless(done: Done) -> bool:
    """Whether no output and no file of the run has a key."""
    files = (path for path in done.artifacts.rglob("*") if path.is_file())
    texts = [done.out, done.err, *(path.read_bytes().decode("utf-8", "replace") for path in files)]
    return not any(key in text for text in texts for key in KEYS.values())


def test_a_run_goes_to_two_trackers_and_a_directory(aiperf: Program, simulator: Simulator, tmp_path: Path) -> None:
    there, store = tmp_path / "there", tmp_path / "store"
    done = profile(
        aiperf, simulator, "--mlflow-tracking-uri", store.as_uri(), "--mlflow-tag", "team:a", "--wandb-project", "speed",
        "--upload", there.as_uri(),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not [line for line in done.err.splitlines() if " WARNING " in line and "upload" in line]
    marker = json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())
    assert marker["partial"] is False and "mlflow_export.json" in marker["files"]
    assert f"MLflow Export: {done.artifacts}/mlflow_export.json" in done.out
    receipt = json.loads((done.artifacts / "mlflow_export.json").read_text())
    assert receipt["benchmark_id"] == done.json()["benchmark_id"]
    (run,) = store.glob(f"*/{receipt['run_id']}")
    value = float((run / "metrics" / "request_count").read_text().split()[1])
    assert value == 6 and (run / "tags" / "team").read_text() == "a"
    assert (run / "artifacts" / "exports" / "profile_export_aiperf.json").read_bytes() == (
        done.artifacts / "profile_export_aiperf.json"
    ).read_bytes()
    assert [*(done.artifacts / "wandb").glob("offline-run-*/*.wandb")]
    copies = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert copies == {*marker["files"], "logs/aiperf.log", ".aiperf_results_ready.json"}
    assert keyless(done)


def test_receivers_that_are_not_there_leave_a_run_as_it_is(aiperf: Program, simulator: Simulator) -> None:
    nobody = "http://127.0.0.1:9"
    aiperf.environment |= {
        "WANDB_MODE": "online", "WANDB_BASE_URL": nobody, "AWS_ENDPOINT_URL": nobody, "AWS_ACCESS_KEY_ID": "a",
        "AWS_MAX_ATTEMPTS": "1", "AIPERF_WANDB_EXPORT_TIMEOUT_SECONDS": "3",
    }  # fmt: skip
    done = profile(
        aiperf, simulator, "--mlflow-tracking-uri", nobody, "--wandb-project", "speed", "--upload", "s3://bucket/runs"
    )
    assert done.code == 0, done.err
    warnings = "\n".join(line for line in done.err.splitlines() if " WARNING " in line)
    for option in (f"--mlflow-tracking-uri {nobody}: ", "--wandb-project speed: ", "--upload s3://bucket/runs: "):
        assert option in warnings, warnings
    for name in json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["files"]:
        assert name in warnings
    assert json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["partial"] is False
    assert not (done.artifacts / "mlflow_export.json").exists()
    assert keyless(done)


def test_the_runs_of_a_sweep_go_together_behind_the_last(aiperf: Program, simulator: Simulator, tmp_path: Path) -> None:
    there, store = tmp_path / "there", tmp_path / "store"
    collector = Collector()
    done = profile(
        aiperf, simulator, "--concurrency", "1,2", "--mlflow-tracking-uri", store.as_uri(), "--wandb-project", "speed",
        "--upload", there.as_uri(), "--otel-url", f"127.0.0.1:{collector.port}",
    )  # fmt: skip
    collector.close()
    assert done.code == 0, done.err
    assert not [line for line in done.err.splitlines() if " WARNING " in line and ("upload" in line or "otel" in line)]
    names = ["concurrency_1", "concurrency_2"]
    receipt = json.loads((done.artifacts / "mlflow_export.json").read_text())
    assert len(receipt["runs"]) == 2 and not [*done.artifacts.glob("concurrency_*/mlflow_export.json")]
    for label, run_id in receipt["runs"].items():
        (run,) = store.glob(f"*/{run_id}")
        assert (run / "tags" / "mlflow.parentRunId").read_text() == receipt["run_id"]
        assert (run / "params" / "cell.concurrency").read_text() == label.partition("/")[0].removeprefix("concurrency_")
    assert len([*(done.artifacts / "wandb").glob("offline-run-*/*.wandb")]) == 3
    copies = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    files = (".aiperf_results_ready.json", "profile_export_aiperf.json")
    assert {f"{name}/{file}" for name in names for file in files} <= copies
    assert "mlflow_export.json" in copies and "sweep_aggregate/profile_export_aiperf_sweep.json" in copies
    assert not any("journal" in copy for copy in copies)
    studies = {collected.get("aiperf.sweep.id") for collected in collector.resources()}
    assert studies == {receipt["benchmark_id"]}
    assert len({collected["aiperf.benchmark.id"] for collected in collector.resources()}) == 2
    assert keyless(done)
