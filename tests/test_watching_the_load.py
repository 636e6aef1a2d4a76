"""What is watched while load goes on: the share of failures that ends a run, and numbers that are logged."""

from __future__ import annotations

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program

START = ["profile", "--model", "m", "--tokenizer", "builtin", "--isl", "10"]


def test_too_many_failures_end_the_run_with_partial_results(aiperf: Program) -> None:
    with running(faults=["fail=500@0.5"], first_token_ms=20, decode_ms=1, tokens=2, seed=3) as simulator:
        load = ["--concurrency", "4", "--request-count", "2000", "--failed-request-threshold", "0.2"]
        done = aiperf(*START, "--url", simulator.url, *load)
        asked = simulator.summary()["requests"]
    assert done.code == 1
    report = done.json()
    finished = report["request_count"]["avg"] + report["error_request_count"]["avg"]
    assert 10 <= finished <= asked < 1000, "it ended long before all were sent"
    assert (report["is_complete"], report["was_cancelled"]) == (False, False)
    assert "requests failed, a larger share than --failed-request-threshold 0.2" in report["incomplete_reason"]
    assert report["incomplete_reason"] in done.err


def test_a_share_below_the_threshold_changes_nothing(aiperf: Program) -> None:
    with running(faults=["fail=500@0.2"], first_token_ms=1, decode_ms=1, tokens=2, seed=3) as simulator:
        load = ["--concurrency", "4", "--request-count", "60", "--failed-request-threshold", "0.6"]
        done = aiperf(*START, "--url", simulator.url, *load)
    assert done.code == 0, done.err
    assert done.json()["is_complete"] is True
    assert done.json()["error_request_count"]["avg"] > 0


@pytest.mark.parametrize(("concurrency", "requests", "code"), [(2, 9, 0), (2, 10, 1), (20, 20, 1)])
def test_a_share_of_few_requests_says_nothing(aiperf: Program, concurrency: int, requests: int, code: int) -> None:
    """At least ten requests, and as many as may be under way, must be over; then one failure of ten is more than none."""
    with running(faults=["fail=500@0.4"], first_token_ms=1, decode_ms=1, tokens=2, seed=3) as simulator:
        load: list[str | int] = ["--concurrency", concurrency, "--request-count", requests, "--failed-request-threshold", "0"]
        done = aiperf(*START, "--url", simulator.url, *load)
        failed = simulator.summary()["statuses"]["500"]
    assert 0 < failed < requests
    assert done.code == code


@pytest.mark.parametrize(("typed", "code"), [((), 1), (("--failed-request-threshold", "1"), 0)])
def test_more_failures_than_half_are_exit_code_1(aiperf: Program, typed: tuple[str, ...], code: int) -> None:
    with running(faults=["fail=500@0.8"], first_token_ms=1, decode_ms=1, tokens=2, seed=3) as simulator:
        done = aiperf(*START, "--url", simulator.url, "--concurrency", "4", "--request-count", "40", *typed)
        failed = simulator.summary()["statuses"]["500"]
    assert 20 < failed < 40
    assert done.code == code
    said = f"aiperf: {failed} of 40 requests failed, more than half; --failed-request-threshold sets another limit"
    assert (said in done.err) is (code == 1)
    assert done.json()["is_complete"] is True, "all requests were sent"
    assert f"{failed} of 40 requests failed: every latency and length is of the other {40 - failed} alone" in done.out


def test_failures_of_the_warmup_do_not_count(aiperf: Program) -> None:
    with running(ready_after_requests=5, first_token_ms=1, decode_ms=1, tokens=2) as simulator:
        load = ["--warmup-request-count", "8", "--request-count", "12", "--failed-request-threshold", "0"]
        done = aiperf(*START, "--url", simulator.url, *load)
        failed = simulator.summary()["statuses"].get("503", 0)
    assert failed == 5, "the warmup met a server that was not ready"
    assert done.code == 0, done.err


def test_live_numbers_are_logged_when_asked_for(aiperf: Program, simulator: Simulator) -> None:
    load = ["--benchmark-duration", "1.5", "--ui", "none"]
    quiet = aiperf(*START, "--url", simulator.url, *load)
    assert "requests/s" not in quiet.err.replace("target: ", "")
    done = aiperf(*START, "--url", simulator.url, *load, "--stats-interval", "0.4")
    lines = [line for line in done.err.splitlines() if " done  " in line]
    assert 2 <= len(lines) <= 4, done.err
    assert all("profiling" in line for line in lines) and done.err.count(" requests/s (so far ") == len(lines)


def test_a_long_warmup_shows_that_it_goes_on(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL"] = "0.4"
    done = aiperf(*START, "--url", simulator.url, "--warmup-duration", "1.2", "--request-count", "2", "--ui", "none")
    assert done.code == 0, done.err
    assert any("warmup" in line and " done  " in line for line in done.err.splitlines())
