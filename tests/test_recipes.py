"""The command lines that operators type, as they type them, with fewer and shorter requests."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program

START = "aiperf profile --model M --url http://H:P --endpoint-type chat --streaming --tokenizer builtin"

R1 = f"{START} --concurrency 10 --request-count 100 --isl 1000 --osl 500"
R10 = f"{START} --request-rate 20 --arrival-pattern poisson --concurrency 60 --benchmark-duration 120"
R13 = f"{START} --use-server-token-count"
R15 = START
BURSTY = "--request-rate 50 --arrival-pattern gamma --arrival-smoothness 0.5"
R17 = f"{START} {BURSTY} --warmup-request-count 100 --request-count 2000"
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


def test_r10_rate_with_a_ceiling(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R10, request_rate=40, benchmark_duration=2)
    assert done.code == 0, done.err
    report = done.json()
    arrivals = report["measurement"]["arrivals"]
    assert arrivals["planned"] == arrivals["completed"] + arrivals["never_sent"]
    assert simulator.summary()["requests"] == report["request_count"]["avg"]
    assert 40 < report["request_count"]["avg"] < 130, "80 are due on average"


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
        ("aiperf plugins --validate", []),
    ],
)
def test_r16_plugin_registry(aiperf: Program, line: str, said: list[str]) -> None:
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


def test_r20_absolute_export_prefix(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, R20)
    assert done.code == 0, done.err
    for name in ("run1.json", "run1.csv", "run1.jsonl", "run1_arrivals.jsonl", "run1_console.txt", "inputs.json"):
        assert (done.artifacts / name).is_file()
    assert json.loads((done.artifacts / "run1.json").read_text())["request_count"]["avg"] == 10
    assert not list(done.artifacts.glob("profile_export*"))
