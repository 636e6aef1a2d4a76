"""Whole runs of the AgentX scenario, by the command lines of InferenceX and evalscope, against the simulator."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from agentx_corpus import COMMIT, FILE, REPOSITORY, corpus, on_hub, tokenizer
from aiperf_command_simulate.testing import Simulator, running
from aiperf_dataset_public.testing import Hub, running_hub
from program import Done, Program

R21 = (
    "aiperf profile --scenario inferencex-agentx-mvp --url U --endpoint /v1/chat/completions --endpoint-type chat --streaming"
    " --model M --tokenizer T --concurrency C --benchmark-duration 1800 --stats-interval 30 --random-seed 42"
    " --failed-request-threshold X --trajectory-start-min-ratio 0.25 --trajectory-start-max-ratio 0.75"
    " --warmup-requests-per-lane 10 --trace-idle-gap-cap-seconds 300 --warmup-grace-period 1800 --use-server-token-count"
    " --no-gpu-telemetry --tokenizer-trust-remote-code --max-context-length L --num-dataset-entries 393"
    " --slice-duration 1.0 --output-artifact-dir D --public-dataset semianalysis_cc_traces_weka_062126_256k"
)
R22 = (
    "aiperf profile --scenario inferencex-agentx-mvp --url U --endpoint-type chat --model M --concurrency C"
    " --benchmark-duration 60.0 --random-seed 20260707 --use-server-token-count --artifact-dir D --ui simple --tokenizer T"
    " --num-dataset-entries 4 --hf-weka-dataset DIR --unsafe-override"
)
ANY_FILE = ("--hf-revision", COMMIT)
"""The set's file is known by its hash: this takes the one that the hub here has."""
MARKER = re.compile(r"\[rid:[0-9a-f]{12}\]\n\n")


def line(recipe: str, folder: Path, simulator: Simulator, **others: str | float) -> list[str]:
    """The words of a recipe with files in *folder*; *others*: values of options, in place of those that it has."""
    usual = {
        "U": simulator.url, "M": "m", "T": str(tokenizer(folder / "tokenizer")), "C": "2", "X": "0.5", "L": "100000",
        "D": str(folder / "artifacts"), "DIR": str(folder / "corpus"),
    }  # fmt: skip
    needless = set() if find_spec("transformers") else {"--tokenizer-trust-remote-code"}  # which needs that package
    words = [usual.get(word, word) for word in shlex.split(recipe)[1:] if word not in needless]
    for name, value in others.items():
        words[words.index(f"--{name.replace('_', '-')}") + 1] = str(value)
    return words


@contextmanager
def of_hub(folder: Path) -> Iterator[tuple[Program, Hub]]:
    """A program in *folder*, whose hub is on this machine and has the set.  R21 itself says that there are no GPUs."""
    program = Program(folder, gpus=True)
    with running_hub() as hub:
        on_hub(hub, corpus(8))
        program.environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "home")}
        yield program, hub


def inferencex(folder: Path, simulator: Simulator, *more: str, **others: str | float) -> Done:
    """R21 with the set on a hub of this machine."""
    with of_hub(folder) as (program, hub):
        done = program(*line(R21, folder, simulator, **others), *ANY_FILE, *more)
        assert hub.fetched() == [FILE], done.err
    return replace(done, artifacts=folder / "artifacts")


def evalscope(program: Program, simulator: Simulator, **others: str | float) -> Done:
    """R22 with its directory."""
    (program.folder / "corpus").mkdir()
    (program.folder / "corpus" / FILE).write_bytes(corpus(6))
    return program(*line(R22, program.folder, simulator, **others))


def check_inferencex(done: Done, seen: list[dict[str, Any]]) -> None:
    """What InferenceX's reader takes, and what the server saw."""
    assert done.code == 0, done.err
    results = done.json()
    assert results["metadata"]["dataset"] == {
        "source_type": "public_dataset", "loader": "semianalysis_cc_traces_weka_062126_256k", "hf_dataset_name": REPOSITORY,
        "hf_split": "train", "hf_revision": COMMIT, "sha256": sha256(corpus(8)).hexdigest(), "num_dataset_entries": 393,
    }  # fmt: skip
    assert results["run_info"]["random_seed"] == 42 and results["schema_version"] == "1.5"
    bodies = [json.loads(request["body"]) for request in seen]
    assert all(body["ignore_eos"] is True and body["stream"] is True for body in bodies)
    first = [next(message["content"] for message in body["messages"] if message["role"] == "user") for body in bodies]
    assert all(MARKER.match(text) for text in first), "each tree has its marker, in both phases"
    lines = done.lines("profile_export.jsonl")
    phases = Counter(row["metadata"]["benchmark_phase"] for row in lines)
    assert all(row["metadata"]["request_end_ns"] >= row["metadata"]["request_start_ns"] for row in lines)
    assert {row["metadata"]["conversation_id"].partition("::")[0] for row in lines} <= {f"tr{number}" for number in range(8)}
    warm = [body for body in bodies if body["max_completion_tokens"] == 1]
    assert len(warm) == phases["warmup"] >= 20, "ten requests of each lane's warmup, and its primers"
    assert phases["profiling"] == results["request_count"]["avg"] and len(lines) <= len(seen)


def test_r21_inferencex(tmp_path: Path) -> None:
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator:
        done = inferencex(tmp_path, simulator, "--unsafe-override", benchmark_duration=3)
        check_inferencex(done, simulator.truth()["requests"])
    told = done.json()["metadata"]
    assert (told["submission_valid"], told["submission_invalid_reasons"]) == (False, ["unsafe_override"])
    assert "Scenario inferencex-agentx-mvp: the run doesn't count: unsafe_override" in done.out


def test_r22_evalscope(aiperf: Program, simulator: Simulator) -> None:
    done = evalscope(aiperf, simulator, benchmark_duration=3)
    assert done.code == 0, done.err
    results = done.json()
    assert results["metadata"]["submission_invalid_reasons"] == ["unsafe_override"]
    assert results["runtime_submission_invalid_reasons"] == [] and results["was_cancelled"] is False
    assert results["aiperf_version"] and results["schema_version"] == "1.5" and results["error_summary"] == []
    metrics = {name: each for name, each in results.items() if isinstance(each, dict) and isinstance(each.get("unit"), str)}
    statistics = ("avg", "min", "max", "std", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "sum")
    for each in metrics.values():
        assert all(isinstance(each[name], int | float) for name in statistics if name in each)
        assert isinstance(each.get("count", 0), int)
    assert metrics["request_count"]["avg"] > 0 and metrics["context_overflow_count"]["avg"] == 0
    warned = re.findall(r"WARNING --(?:hf-weka-dataset|benchmark-duration) .*: inferencex-agentx-mvp requires", done.err)
    assert len(warned) == 2


def test_every_lock_of_a_line_is_told_at_once(aiperf: Program, simulator: Simulator) -> None:
    (aiperf.folder / "corpus").mkdir()
    (aiperf.folder / "corpus" / FILE).write_bytes(corpus(2))
    words = [word for word in line(R22, aiperf.folder, simulator, benchmark_duration=60) if word != "--unsafe-override"]
    broken = (
        "--no-streaming --extra-inputs ignore_eos:false --ignore-trace-delays --synthesis-max-isl 5000 --cache-bust none"
        " --inter-turn-delay-cap-seconds 5 --system-idle-gap-cap-seconds 5"
    )
    done = aiperf(*words, *broken.split())
    assert done.code == 1
    told = list(re.findall(r"error: (--[a-z-]+)", done.err))
    assert told == [
        "--no-streaming", "--extra-inputs", "--ignore-trace-delays", "--synthesis-max-isl",
        "--hf-weka-dataset", "--cache-bust", "--benchmark-duration", "--inter-turn-delay-cap-seconds",
        "--system-idle-gap-cap-seconds",
    ], done.err  # fmt: skip
    assert simulator.truth()["requests"] == []


@pytest.mark.long
def test_r21_and_r22_as_they_are_written(tmp_path: Path) -> None:
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator:
        (tmp_path / "one").mkdir()
        check_inferencex(
            inferencex(tmp_path / "one", simulator, "--unsafe-override", benchmark_duration=60),
            simulator.truth()["requests"],
        )  # fmt: skip
        (tmp_path / "two").mkdir()
        done = evalscope(Program(tmp_path / "two"), simulator)
    assert done.code == 0 and done.json()["metadata"]["submission_invalid_reasons"] == ["unsafe_override"]


@pytest.mark.long
def test_a_run_of_fifteen_minutes_counts(tmp_path: Path) -> None:
    quick = running(truth_bodies=True, first_token_ms=5, decode_ms=1, decode_batch_us=0)
    with quick as simulator, of_hub(tmp_path) as (program, _):
        done = program.start(*line(R21, tmp_path, simulator, benchmark_duration=900), *ANY_FILE).end(1500)
        done = replace(done, artifacts=tmp_path / "artifacts")
        check_inferencex(done, simulator.truth()["requests"])
    told = done.json()["metadata"]
    assert told["submission_valid"] is True and "submission_invalid_reasons" not in told
    (coverage,) = told["metric_duration_coverage"]
    assert coverage["ttft_ratio"] >= 0.95 and done.json()["runtime_submission_invalid_reasons"] == []
    assert "Scenario inferencex-agentx-mvp: the run counts" in done.out


@pytest.mark.long
def test_too_many_long_contexts_are_a_reason(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0, max_context=80) as simulator:
        done = inferencex(
            tmp_path, simulator, "--unsafe-override", benchmark_duration=5, trajectory_start_max_ratio=0.25,
            failed_request_threshold=1, warmup_requests_per_lane=1,
        )  # fmt: skip
    results = done.json()
    assert results["metadata"]["submission_invalid_reasons"] == ["unsafe_override", "context_overflow_rate_exceeded"]
    assert results["context_overflow_count"]["avg"] >= results["skipped_context_overflow_count"]["avg"] > 0


@pytest.mark.long
def test_metrics_that_end_early_are_a_reason(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator, of_hub(tmp_path) as (program, _):
        done = program(*line(R21, tmp_path, simulator, benchmark_duration=900), *ANY_FILE, "--request-count", 40)
    results = replace(done, artifacts=tmp_path / "artifacts").json()
    assert done.code == 1
    assert results["metadata"]["submission_valid"] is False
    reasons = ["insufficient_profile_metric_coverage"]
    assert results["metadata"]["submission_invalid_reasons"] == results["runtime_submission_invalid_reasons"] == reasons
    (coverage,) = results["metadata"]["metric_duration_coverage"]
    assert (coverage["expected_duration_seconds"], coverage["required_ratio"]) == (900, 0.95)
    assert max(coverage["ttft_ratio"], coverage["inter_token_latency_ratio"]) < 0.1


@pytest.mark.long
def test_a_sweep_is_a_reason(aiperf: Program, simulator: Simulator) -> None:
    (aiperf.folder / "corpus").mkdir()
    (aiperf.folder / "corpus" / FILE).write_bytes(corpus(6))
    words = line(R22, aiperf.folder, simulator, benchmark_duration=2, concurrency="1,2")
    refused = aiperf(*(word for word in words if word != "--unsafe-override"))
    assert refused.code == 1 and "--concurrency with several values: inferencex-agentx-mvp" in refused.err, refused.err
    done = aiperf(*words)
    assert done.code == 0, done.err
    told = (json.loads(path.read_text()) for path in done.artifacts.rglob("profile_export_aiperf_*.json"))
    about = [each["metadata"] for each in told if "submission_valid" in each.get("metadata", {})]
    assert about and not any(each["submission_valid"] for each in about), sorted(done.artifacts.rglob("*.json"))
    assert ["unsafe_override", "scenario_with_sweep"] in [each["submission_invalid_reasons"] for each in about]


@pytest.mark.long
def test_a_signal_is_a_reason(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator, of_hub(tmp_path) as (program, _):
        started = program.start(*line(R21, program.folder, simulator, benchmark_duration=900), *ANY_FILE)
        started.hears("Phase profiling")
        started.interrupt()
        done = replace(started.end(), artifacts=tmp_path / "artifacts")
    assert done.code == 130 and done.json()["metadata"]["submission_invalid_reasons"] == ["run_cancelled"]
