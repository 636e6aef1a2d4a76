"""Numbers that the reference gets wrong where something goes wrong: judged by the server's own log."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program

MS = 1_000_000
SLACK_MS = 25
REQUESTS = 80
LATE_MS = 120
FAULTS = [f"fail=500,slow_first={LATE_MS / 1000}@0.2", "cut=3@0.2", "error=2@0.1", "error_event=2@0.1"]
TOTALS = ("request_latency", "response_latency", "effective_latency", "time_to_first_token")


def words(url: str, *more: str) -> list[str]:
    given = ["--tokenizer", "builtin", "--isl", "10", "--random-seed", "5", "--ui", "none"]
    return ["profile", "--model", "sim", "--url", url, *given, *more]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, dict[str, dict[str, Any]]]:
    """A run at a server that fails late, cuts answers and says errors in them; and the server's rows by request."""
    aiperf = Program(tmp_path_factory.mktemp("failing"))
    with running(first_token_ms=10, decode_ms=1, decode_batch_us=0, faults=FAULTS, seed=3) as server:
        load = ["--request-rate", "100", "--request-count", str(REQUESTS), "--osl", "8"]
        done = aiperf(*words(server.url, "--streaming", *load))
        rows = {row["request_id"]: row for row in server.truth()["requests"]}
    assert done.code == 0, done.err
    assert len(rows) == REQUESTS
    return done, rows


Failing = tuple[Done, dict[str, dict[str, Any]]]


@pytest.mark.timing
def test_an_http_error_ends_when_its_answer_ends(failing: Failing) -> None:
    done, rows = failing
    late = [line for line in done.lines("profile_export.jsonl") if line.get("error", {}).get("code") == 500]
    late = [line for line in late if rows[line["metadata"]["x_request_id"]]["status"] == 500]
    assert len(late) > 5
    for line in late:
        data = line["metadata"]
        row = rows[data["x_request_id"]]
        took_ms = (data["request_end_ns"] - data["request_start_ns"]) / MS
        assert took_ms > LATE_MS - 1
        assert took_ms == pytest.approx((row["ended_mono_ns"] - row["received_mono_ns"]) / MS, abs=SLACK_MS)


def test_failures_enter_no_latency(failing: Failing) -> None:
    done, rows = failing
    good = sum(row["outcome"] == "completed" for row in rows.values())
    summary = done.json()
    assert {tag: summary[tag]["count"] for tag in TOTALS} == dict.fromkeys(TOTALS, good)
    failed = [line for line in done.lines("profile_export.jsonl") if "error" in line]
    assert len(failed) == REQUESTS - good
    assert not any(set(TOTALS) & set(line["metrics"]) for line in failed)


def test_what_became_of_each_request_is_what_the_server_did(failing: Failing) -> None:
    done, rows = failing
    did = Counter(row["outcome"] for row in rows.values())
    summary = done.json()
    said = did["failed"] + did["error said in-band"]
    assert min(did.values()) > 0 and len(did) == 4
    assert summary["outcomes"] == {"completed": did["completed"], "failed": said, "cut": did["cut"]}
    assert summary["request_count"]["avg"] == did["completed"]
    assert summary["error_request_count"]["avg"] == REQUESTS - did["completed"]
    assert summary["request_error_rate"]["avg"] == pytest.approx(100 * (1 - did["completed"] / REQUESTS))


def test_an_error_within_a_stream_keeps_what_the_server_said(failing: Failing) -> None:
    done, rows = failing
    lines = {line["metadata"]["x_request_id"]: line for line in done.lines("profile_export.jsonl")}
    said = [lines[name]["error"] for name, row in rows.items() if row["outcome"] == "error said in-band"]
    assert len(said) > 5
    assert {(one["code"], one["type"]) for one in said} == {(500, "SimulatedError")}
    assert all("simulator" in one["message"] for one in said)


@pytest.mark.timing
def test_the_time_base_of_throughput_includes_failed_requests(failing: Failing) -> None:
    done, rows = failing
    summary = done.json()
    span_s = (max(r["ended_mono_ns"] for r in rows.values()) - min(r["received_mono_ns"] for r in rows.values())) / 1e9
    assert summary["benchmark_duration"]["avg"] == pytest.approx(span_s, abs=SLACK_MS / 1e3)
    good = sum(row["outcome"] == "completed" for row in rows.values())
    assert summary["request_throughput"]["avg"] * summary["benchmark_duration"]["avg"] == pytest.approx(good)


def test_requests_have_the_time_they_were_due_as_their_beginning(failing: Failing) -> None:
    done, _ = failing
    planned = {row["n"]: row["due_ns"] for row in done.lines("profile_export_arrivals.jsonl")}
    for line in done.lines("profile_export.jsonl"):
        data = line["metadata"]
        assert data["credit_issued_ns"] == data["due_ns"] == planned[data["session_num"]]


def test_how_writes_were_cut_is_no_metric(failing: Failing) -> None:
    done, _ = failing
    assert not {tag for line in done.lines("profile_export.jsonl") for tag in line["metrics"] if "chunks_sent" in tag}
    assert "http_req_chunks_sent" not in done.json()


def test_the_report_is_on_standard_output_and_talk_on_standard_error(failing: Failing) -> None:
    done, _ = failing
    stamped = re.compile(r"^\d\d:\d\d:\d\d\.\d{3} ", re.MULTILINE)
    assert not stamped.search(done.out)
    assert stamped.search(done.err)


def test_turns_of_a_session_have_one_model(aiperf: Program, simulator: Simulator) -> None:
    line = [*words(simulator.url, "--osl", "3", "--num-sessions", "6", "--session-turns-mean", "3")]
    line[line.index("sim")] = "one,two"
    assert aiperf(*line).code == 0
    models: dict[str, set[str]] = {}
    for row in simulator.truth()["requests"]:
        models.setdefault(row["correlation_id"], set()).add(row["model"])
    assert [len(each) for each in models.values()] == [1] * 6
    assert Counter(next(iter(each)) for each in models.values()) == {"one": 3, "two": 3}


def test_ids_are_of_this_run_alone(aiperf: Program, simulator: Simulator) -> None:
    seen = []
    for _ in range(2):
        simulator.reset()
        assert aiperf(*words(simulator.url, "--osl", "3", "--request-count", "6")).code == 0
        rows = simulator.truth()["requests"]
        seen.append({row[name] for row in rows for name in ("request_id", "correlation_id")})
    assert [len(each) for each in seen] == [12, 12]
    assert not seen[0] & seen[1], "the same seed, and other ids"
    assert all(str(uuid.UUID(each)) == each for each in seen[0] | seen[1])


def test_a_warmup_in_which_everything_failed_is_told(aiperf: Program) -> None:
    with running(faults=["fail=503"]) as simulator:
        done = aiperf(*words(simulator.url, "--osl", "3", "--warmup-request-count", "3", "--request-count", "2"))
    assert done.code == 1
    assert "every warmup request failed" in done.err
    assert "every warmup request failed" in done.json()["warnings"]


def limited(line: list[str], soft: int, hard: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program where only so many files may be open."""
    command = [sys.executable, "-m", "aiperf", *line, "--artifact-dir", str(folder / "artifacts")]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=600, check=False)


def test_the_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    with running(first_token_ms=400, decode_ms=1, decode_batch_us=0) as simulator:
        load = ["--osl", "2", "--concurrency", "100", "--request-count", "100"]
        done = limited(words(simulator.url, *load), 64, 1024, tmp_path)
        assert done.returncode == 0, done.stderr
        assert simulator.summary()["in_flight_max"] == 100


def test_a_limit_of_open_files_that_is_too_low_is_named(tmp_path: Path) -> None:
    done = limited(words("http://127.0.0.1:9", "--request-count", "1"), 128, 128, tmp_path)
    assert done.returncode == 1
    assert "the limit of open files is 128; 256 are needed" in done.stderr
    assert "ulimit -n" in done.stderr


def test_a_closed_loop_beyond_the_limit_of_open_files_is_refused(tmp_path: Path) -> None:
    done = limited(words("http://127.0.0.1:9", "--concurrency", "300", "--request-count", "300"), 300, 300, tmp_path)
    assert done.returncode == 1
    assert "concurrency 300 needs 364 open files in the worker; the limit is 300" in done.stderr
    assert "ulimit -n 364" in done.stderr


def test_a_client_at_its_limit_is_no_fault_of_the_server(tmp_path: Path) -> None:
    with running(first_token_ms=4000, decode_ms=1, decode_batch_us=0) as simulator:
        done = limited(words(simulator.url, "--osl", "2", "--request-rate", "500", "--request-count", "500"), 64, 256, tmp_path)
        seen = simulator.summary()["requests"]
    summary = json.loads((tmp_path / "artifacts" / "profile_export_aiperf.json").read_text())
    assert done.returncode == (1 if 500 - seen > 250 else 0), done.stderr
    assert summary["outcomes"] == {"completed": seen, "client_limit": 500 - seen}
    assert summary["measurement"]["verdict"] == "suspect"
    (reason,) = [reason for reason in summary["measurement"]["reasons"] if "limit of its own" in reason]
    assert f"for {500 - seen} requests" in reason and "ulimit -n" in reason


def test_a_server_on_ipv6_alone_is_reached(aiperf: Program) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    with running(host="::1", first_token_ms=1, decode_ms=1) as simulator:
        assert simulator.url.startswith("http://[::1]:")
        done = aiperf(*words(simulator.url, "--osl", "2", "--request-count", "2"))
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == 2
