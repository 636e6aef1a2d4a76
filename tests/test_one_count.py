"""Failed requests are counted once: the log, the summary, the ledger and the records agree, and the ledger has every end."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program

FAULTS = ["fail=500@0.15", "error=1@0.15", "cut=2, framing=eof@0.15", "cut=0, framing=eof@0.15"]
"""An error status, an error in the stream, a stream that ends early without an error, an answer without content."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    aiperf = Program(tmp_path_factory.mktemp("one-count"))
    with running(faults=FAULTS, first_token_ms=5, decode_ms=1, seed=5) as simulator:
        done = aiperf(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 30,
            "--osl", 12, "--concurrency", 8, "--request-count", 80, "--random-seed", 7, "--request-cancellation-rate", 10,
            "--request-cancellation-delay", 0, "--failed-request-threshold", 1, "--ui", "none",
        )  # fmt: skip
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="module")
def outcomes(done: Done) -> dict[str, int]:
    found: dict[str, int] = done.json()["outcomes"]
    assert {"completed", "failed", "cut", "empty", "cancelled"} <= found.keys()
    return found


def test_every_file_counts_failed_requests_alike(done: Done, outcomes: dict[str, int]) -> None:
    good, failed = outcomes["completed"], sum(outcomes.values()) - outcomes["completed"]
    (phase,) = done.json()["phases"]
    assert (phase["valid"], phase["failed"]) == (good, failed)
    assert f"{good} succeeded, {failed} failed\n" in (done.artifacts / "logs" / "aiperf.log").read_text()
    assert re.search(rf"Requests: {good} completed, {failed} failed \(", done.out)
    assert Counter("error" in line for line in done.lines("profile_export.jsonl")) == {False: good, True: failed}
    assert done.json()["error_request_count"]["avg"] == failed


def test_the_ledger_has_every_outcome(done: Done, outcomes: dict[str, int]) -> None:
    rows = Counter(row["outcome"] for row in done.lines("profile_export_arrivals.jsonl"))
    errors = outcomes["failed"] + outcomes["empty"]
    assert rows == {"error": errors, **{name: outcomes[name] for name in ("completed", "cut", "cancelled")}}
    arrivals = done.json()["measurement"]["arrivals"]
    assert (arrivals["errors"], arrivals["cut"], arrivals["cancelled"]) == (errors, outcomes["cut"], outcomes["cancelled"])
    assert f"{errors} errors, {outcomes['cut']} cut, {outcomes['cancelled']} cancelled" in done.out


def test_the_duration_and_the_requests_in_flight_follow_from_the_ledger(done: Done) -> None:
    rows: list[dict[str, Any]] = done.lines("profile_export_arrivals.jsonl")
    report = done.json()
    begin, end = min(row["started_ns"] for row in rows), max(row["ended_ns"] for row in rows)
    assert (end - begin) / 1e9 == pytest.approx(report["benchmark_duration"]["avg"], rel=1e-9)
    # As records have it: a request that failed was over with its last byte, whenever it was given up.
    ends = [row["ended_ns"] if row.get("last_byte_ns") is None else row["last_byte_ns"] for row in rows]
    in_flight_s = sum(ended - row["started_ns"] for ended, row in zip(ends, rows, strict=True)) / 1e9
    mean = report["effective_concurrency"]["avg"]
    assert in_flight_s == pytest.approx(mean * report["observation_window"]["avg"], rel=1e-6)
