"""The command lines that operators type, as they type them, with fewer and shorter requests."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_dataset_public.testing import Repository, running_hub
from program import Done, Program

START = "aiperf profile --model M --url http://H:P --endpoint-type chat --streaming --tokenizer builtin"

R1 = f"{START} --concurrency 10 --request-count 100 --isl 1000 --osl 500"
TRACE = "--input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule"
R2 = (
    f"{START} {TRACE} --goodput 'time_to_first_token:250 inter_token_latency:10 request_latency:2000'"
    " --warmup-duration 30 --benchmark-duration 600 --benchmark-grace-period 60"
)
R4 = (
    f"{START} --concurrency 100 --request-count 2000 --isl 1000 --osl 500 --num-profile-runs 5 --confidence-level 0.95"
    " --profile-run-cooldown-seconds 30 --goodput 'time_to_first_token:300 inter_token_latency:8'"
)
R5 = f"{START} --public-dataset sharegpt --num-sessions 200 --concurrency 50"
R6 = f"{START} {TRACE} --goodput 'time_to_first_token:400 request_latency:2000'"
PRELUDES = "--shared-system-prompt-length 1000 --user-context-prompt-length 200"
R7 = (
    "aiperf profile --model nvidia/nv-embedqa-e5-v5 --url http://H:P --endpoint-type nim_embeddings --tokenizer builtin"
    " --concurrency 32 --request-count 5000 --prompt-batch-size 16"
)
R8 = f"{START} --input-file conversations.jsonl --custom-dataset-type multi_turn {PRELUDES} --num-sessions 50 --concurrency 25"
R10 = f"{START} --request-rate 20 --arrival-pattern poisson --concurrency 60 --benchmark-duration 120"
R11 = f"{START} --user-centric-rate 1 --num-users 15 --session-turns-mean 20 --benchmark-duration 300"
R12 = ("aiperf analyze-trace --input-file trace.jsonl --block-size 512", "aiperf analyze-trace trace.jsonl")
R13 = f"{START} --use-server-token-count"
R15 = START
BURSTY = "--request-rate 50 --arrival-pattern gamma --arrival-smoothness 0.5"
R17 = f"{START} {BURSTY} --warmup-request-count 100 --request-count 2000"
R18 = f"{START} --request-cancellation-rate 10 --request-cancellation-delay 0.5"
R19 = f"{START} --concurrency 100 --prefill-concurrency 8 --concurrency-ramp-duration 30 --request-count 2000"
R20 = f"{START} --profile-export-prefix /abs/path/run1"

NO_NETWORK = """
import sys

def guard(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            tell(f"connect {address}")
    elif event == "socket.getaddrinfo" and arguments[0] not in (None, "", "127.0.0.1", "::1", "localhost"):
        tell(f"look up {arguments[0]}")

def tell(what):
    with open(LOG, "a") as log:
        log.write(what + "\\n")
    raise OSError(f"no network here: {what}")

sys.addaudithook(guard)
"""


def run(aiperf: Program, simulator: Simulator, recipe: str, **smaller: int | float) -> Done:
    """Run a recipe with the test's server; *smaller*: other values for some of its options."""
    words = shlex.split(recipe.replace("http://H:P", simulator.url))
    for name, value in smaller.items():
        words[words.index("--" + name.replace("_", "-")) + 1] = str(value)
    return aiperf(*words[1:])


def test_r1_smoke_test(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R1, request_count=20, osl=30)
    assert done.code == 0, done.err
    report = done.json()
    assert report["request_count"]["avg"] == 20
    assert report["input_sequence_length"]["min"] == report["input_sequence_length"]["max"] == 1000
    assert report["output_sequence_length"]["avg"] == 30
    assert report["is_complete"] is True
    assert report["error_summary"] == []
    truth = simulator.summary()
    assert truth["requests"] == 20
    served = {row["outcome"] for row in simulator.truth()["requests"]}
    assert served == {"completed"}
    ttft = report["time_to_first_token"]
    assert ttft["p50"] >= 5, "the server doesn't answer sooner"
    assert "Time to First Token" in done.out
    for name in ("profile_export_aiperf.csv", "profile_export.jsonl", "inputs.json", "profile_export_arrivals.jsonl"):
        assert (done.artifacts / name).stat().st_size > 0


def trace(aiperf: Program, count: int) -> None:
    """A trace of *count* requests, 20 ms apart, that begins late."""
    rows = ({"timestamp": 5000 + 20 * n, "input_length": 600, "output_length": 4, "hash_ids": [1, n]} for n in range(count))
    (aiperf.folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_r2_slo_check_on_a_trace(aiperf: Program, simulator: Simulator) -> None:
    trace(aiperf, 30)
    done = run(aiperf, simulator, R2, warmup_duration=0.3, benchmark_duration=0.5, benchmark_grace_period=5)
    assert done.code == 0, done.err
    report = done.json()
    assert report["request_count"]["avg"] == 25, "those due before 0.5 s"
    assert report["good_request_count"]["avg"] <= 25
    share = report["goodput"]["avg"] / report["request_throughput"]["avg"]
    assert share == pytest.approx(report["good_request_count"]["avg"] / 25), "both over the same time"


def test_r4_repeats_with_confidence(aiperf: Program, simulator: Simulator) -> None:
    smaller = {"concurrency": 5, "request_count": 10, "isl": 100, "osl": 4, "num_profile_runs": 3}
    done = run(aiperf, simulator, R4, profile_run_cooldown_seconds=0, **smaller)
    assert done.code == 0, done.err
    assert simulator.summary()["requests"] == 30
    about = json.loads((done.artifacts / "aggregate" / "profile_export_aiperf_aggregate.json").read_text())
    assert about["metadata"]["num_successful_runs"] == 3 and about["metadata"]["confidence_level"] == 0.95
    assert about["metrics"]["goodput_avg"]["ci_low"] <= about["metrics"]["goodput_avg"]["mean"]
    assert (done.artifacts / "profile_runs" / "run_0003" / "profile_export_aiperf.json").exists()


def test_r5_public_data_set(aiperf: Program, simulator: Simulator) -> None:
    commit = "192ab2185289094fc556ec8ce5ce1e8e587154ca"
    name, file = "anon8231489123/ShareGPT_Vicuna_unfiltered", "ShareGPT_V3_unfiltered_cleaned_split.json"
    question, answer = {"from": "human", "value": "What is rain made of?"}, {"from": "gpt", "value": "Water, and some dust."}
    rows = [{"id": f"{n}", "conversations": [question, answer] * (1 + n % 2)} for n in range(230)]
    rows[3]["conversations"] = [answer]
    with running_hub() as hub:
        hub.add(Repository(name)).commit({file: json.dumps(rows).encode()}, commit=commit)
        aiperf.environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(aiperf.folder / "home")}
        done = run(aiperf, simulator, R5)
        assert done.code == 0, done.err
        assert hub.fetched() == [file]
    served = simulator.truth()["requests"]
    assert len({row["correlation_id"] for row in served}) == 200
    assert len(served) == done.json()["request_count"]["avg"] == sum(1 + n % 2 for n in range(201) if n != 3)
    report = done.json()
    wanted = {"name": "main", "type": "public", "dataset": "sharegpt", "entries": 200, "sampling": "sequential"}
    assert report["input_config"]["datasets"] == [wanted], "as the reference has it"
    source = report["dataset"]
    assert (source["commit"], source["rows_read"], source["rows_skipped"]) == (commit, 201, {"no prompt with an answer": 1})


def test_r6_replay_with_goodput(aiperf: Program, simulator: Simulator) -> None:
    trace(aiperf, 20)
    done = run(aiperf, simulator, R6)
    assert done.code == 0, done.err
    rows = simulator.truth()["requests"]
    assert len(rows) == done.json()["request_count"]["avg"] == 20
    assert sum(row["cached_tokens"] > 0 for row in rows) >= 15, "their prompts share a first block"


def test_r7_embeddings_in_batches(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R7, concurrency=4, request_count=8)
    assert done.code == 0, done.err
    report = done.json()
    assert report["request_count"]["avg"] == 8
    # Texts of 550 tokens, joined: where two meet a token may be lost or won.
    assert report["input_sequence_length"]["avg"] == pytest.approx(16 * 550, abs=15)
    assert report["embedding_dimensions"]["min"] == report["embedding_dimensions"]["max"]
    assert not {"output_sequence_length", "time_to_first_token"} & report.keys()
    assert "NIM Embeddings Metrics" in done.out
    assert {row["path"] for row in simulator.truth()["requests"]} == {"/v1/embeddings"}


def test_r8_own_conversations_with_a_shared_system_prompt(aiperf: Program, simulator: Simulator) -> None:
    row = {"turns": [{"text": "Hello"}, {"text": "And now?", "output_length": 3}]}
    (aiperf.folder / "conversations.jsonl").write_text((json.dumps(row) + "\n") * 6)
    done = run(aiperf, simulator, R8, num_sessions=6, concurrency=3)
    assert done.code == 0, done.err
    rows = simulator.truth()["requests"]
    assert (len(rows), len({row["correlation_id"] for row in rows})) == (12, 6)
    first, *_ = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    roles = [message["role"] for message in first["payloads"][0]["messages"]]
    assert roles == ["system", "user", "user"]
    assert done.json()["input_sequence_length"]["min"] >= 1190


def test_r10_rate_with_a_ceiling(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R10, request_rate=40, benchmark_duration=2)
    assert done.code == 0, done.err
    report = done.json()
    arrivals = report["measurement"]["arrivals"]
    assert arrivals["planned"] == arrivals["completed"] + arrivals["never_sent"]
    assert simulator.summary()["requests"] == report["request_count"]["avg"]
    assert 40 < report["request_count"]["avg"] < 130, "80 are due on average"


@pytest.mark.timing
def test_r11_kv_cache_timing_per_user(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R11, user_centric_rate=10, num_users=4, session_turns_mean=3, benchmark_duration=2.05)
    assert done.code == 0, done.err
    rows = simulator.truth()["requests"]
    starts = sorted(row["received_mono_ns"] for row in rows)
    assert len(starts) == done.json()["request_count"]["avg"] == 21, "one every 0.1 s, the first at once"
    gaps = [(after - before) / 1e9 for before, after in pairwise(starts)]
    assert sum(gaps) / len(gaps) == pytest.approx(0.1, rel=0.05)
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("recipe", R12)
def test_r12_trace_statistics(recipe: str, aiperf: Program) -> None:
    rows = [{"timestamp": n, "input_length": 1300, "output_length": 4, "hash_ids": [1, 2, 3 + n]} for n in range(3)]
    (aiperf.folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = aiperf.line(recipe)
    assert done.code == 0, done.err
    assert "Total requests:   3\nUnique prefixes:  5\nPrefix groups:    1\n" in done.out


def test_r13_the_servers_token_counts(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R13)
    assert done.code == 0, done.err
    report, rows = done.json(), simulator.truth()["requests"]
    assert report["request_count"]["avg"] == len(rows) == 10
    assert report["input_sequence_length"]["sum"] == sum(row["prompt_tokens"] for row in rows)
    assert report["output_sequence_length"]["sum"] == sum(row["completion_tokens"] for row in rows)


def guarded(aiperf: Program) -> Path:
    """Keep every process of the program to this machine; gives the file that says what else it tried."""
    site, log = aiperf.folder / "site", aiperf.folder / "network.log"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"LOG = {str(log)!r}\n{NO_NETWORK}")
    aiperf.environment |= {"PYTHONPATH": str(site), "TIKTOKEN_CACHE_DIR": str(site / "none"), "HF_HOME": str(site / "hub")}
    return log


def test_r15_no_network(aiperf: Program, simulator: Simulator) -> None:
    log = guarded(aiperf)
    done = run(aiperf, simulator, R15)
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == 10
    assert not log.exists(), log.read_text()


def test_the_guard_of_the_test_above_holds(aiperf: Program) -> None:
    log = guarded(aiperf)
    words = [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"]
    assert subprocess.run(words, env=aiperf.environment, capture_output=True, check=False).returncode == 1
    assert "192.0.2.1" in log.read_text()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("aiperf plugins", ["aiperf-core", "aiperf-endpoint-chat"]),
        ("aiperf plugins endpoint", ["chat", "completions"]),
        ("aiperf plugins endpoints", ["chat", "completions"]),
        ("aiperf plugins endpoint chat", ["chat", "aiperf-endpoint-chat", "/v1/chat/completions"]),
        ("aiperf plugins --all", ["endpoints", "exporters", "tokenizers", "console", "builtin"]),
    ],
)
def test_r16_plugin_registry(aiperf: Program, line: str, said: list[str]) -> None:
    """``aiperf plugins --validate`` is in test_validate_plugins.py."""
    done = aiperf.line(line)
    assert done.code == 0, done.out + done.err
    assert [word for word in said if word not in done.out] == []


def test_r16_as_json(aiperf: Program) -> None:
    done = aiperf.line("aiperf plugins endpoint chat --json")
    assert done.code == 0
    assert "aiperf-endpoint-chat" in json.dumps(json.loads(done.out))


def test_r17_warm_up_by_count_and_bursty_arrivals(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R17, warmup_request_count=10, request_count=60)
    assert done.code == 0, done.err
    report = done.json()
    assert report["request_count"]["avg"] == 60
    assert simulator.summary()["requests"] == 70
    assert report["warmup_metrics"]["request_count"]["avg"] == 10
    rows = done.lines("profile_export_arrivals.jsonl")
    assert all(row["due_ns"] is not None for row in rows if row["outcome"] == "completed")


def test_r18_cancellation(aiperf: Program) -> None:
    recipe = f"{R18} --concurrency 10 --request-count 60"
    with running(first_token_ms=20, decode_ms=5, tokens=40) as slow:
        done = run(aiperf, slow, recipe, request_cancellation_rate=40, request_cancellation_delay=0.1)
        outcomes = slow.summary()["outcomes"]
    assert done.code == 0, done.err
    report = done.json()
    cancelled = {row["error_details"]["code"]: row["count"] for row in report["error_summary"]}
    assert set(cancelled) == {499}
    assert 10 <= cancelled[499] <= 40, "24 of 60 on average"
    assert outcomes == {"completed": 60 - cancelled[499], "client disconnected": cancelled[499]}
    assert report["request_count"]["avg"] == 60 - cancelled[499]


@pytest.mark.timing
def test_r19_prefill_limit_and_ramps(aiperf: Program) -> None:
    smaller = {"concurrency": 10, "prefill_concurrency": 2, "concurrency_ramp_duration": 1.5, "request_count": 60}
    with running(first_token_ms=40, decode_ms=5, tokens=30) as slow:
        done = run(aiperf, slow, R19, **smaller)
        rows = slow.truth()["requests"]
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == len(rows) == 60
    changes = [(row["received_mono_ns"], 1) for row in rows] + [(row["first_mono_ns"], -1) for row in rows]
    waiting = list(accumulate(change for _, change in sorted(changes)))
    assert max(waiting) <= 2, "requests that wait for their first token"
    begun = min(row["received_mono_ns"] for row in rows)
    early = [row for row in rows if row["received_mono_ns"] - begun < 0.1e9]
    assert len(early) == 1, "the ramp begins with one at a time"


def test_r20_absolute_export_prefix(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R20)
    assert done.code == 0, done.err
    for name in ("run1.json", "run1.csv", "run1.jsonl", "run1_arrivals.jsonl", "run1_console.txt", "inputs.json"):
        assert (done.artifacts / name).is_file()
    assert json.loads((done.artifacts / "run1.json").read_text())["request_count"]["avg"] == 10
    assert not list(done.artifacts.glob("profile_export*"))
