"""Servers that never lived or die: the load on them, the end of the run, and what the report says of it."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, wait_for

START: list[str | float] = ["profile", "--model", "m", "--tokenizer", "builtin", "--isl", 5, "--osl", 5]
TRANSPORTS = pytest.mark.parametrize("transport", ["kernel", "aiohttp"])


@pytest.fixture
def dead_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def refusals(done: Done) -> int:
    """The number of refused requests, the same in the summary and in the records."""
    (error,) = [entry for entry in done.json()["error_summary"] if entry["error_details"].get("cause") == "refused"]
    records = done.lines("profile_export.jsonl")
    refused = [record for record in records if record.get("error", {}).get("cause") == "refused"]
    assert len(refused) == error["count"]
    count: int = error["count"]
    return count


def reasons(done: Done) -> list[str]:
    measurement: dict[str, Any] = done.json()["measurement"]
    assert measurement["verdict"] == ("suspect" if measurement["arrivals"]["completed"] else "none")
    found: list[str] = measurement["reasons"]
    return found


@TRANSPORTS
def test_a_server_that_never_lived_ends_the_run_in_time(aiperf: Program, dead_url: str, transport: str) -> None:
    load: list[str | float] = ["--concurrency", 4, "--request-count", 1000, "--transport", transport]
    done = aiperf(*START, *load, "--url", dead_url, "--unreachable-timeout", 1)
    assert done.code == 1
    assert "results are partial: no connection could be opened for 1 s" in done.err
    assert "--unreachable-timeout 0" in done.err
    assert refusals(done) <= 4 * 30, "slots pause 10 ms, 20 ms and so on; without it there are thousands"
    assert any("no connection could be opened from" in reason for reason in reasons(done))
    assert done.json()["delivered_load"]["sent_rate"] == 0


@TRANSPORTS
def test_refused_requests_count_towards_the_request_count(aiperf: Program, dead_url: str, transport: str) -> None:
    load: list[str | float] = ["--concurrency", 4, "--request-count", 12, "--transport", transport]
    done = aiperf(*START, *load, "--url", dead_url, "--unreachable-timeout", 0)
    assert done.code == 1
    assert refusals(done) == 12
    assert "partial" not in done.err


def test_scheduled_arrivals_try_a_dead_server_at_their_times(aiperf: Program, dead_url: str) -> None:
    done = aiperf(*START, "--request-rate", 100, "--request-count", 150, "--url", dead_url, "--unreachable-timeout", 0)
    assert refusals(done) == 150


def answered(simulator: Simulator) -> int:
    count: int = simulator.summary()["requests"]
    return count


def test_the_report_names_the_moment_when_a_server_died(aiperf: Program) -> None:
    load: list[str | float] = ["--concurrency", 2, "--benchmark-duration", 100, "--unreachable-timeout", 0.5]
    with running(first_token_ms=5, decode_ms=1) as simulator:
        run = aiperf.start(*START, *load, "--url", simulator.url)
        wait_for(lambda: answered(simulator) > 20)
    done = run.end()
    assert done.code == 1
    assert "results are partial: no connection could be opened for 0.5 s" in done.err
    assert refusals(done) > 0
    assert [reason for reason in reasons(done) if "no connection could be opened from" in reason]
    again = aiperf("report", done.artifacts)
    assert "no connection could be opened from" in again.out


def test_a_gap_in_mid_run_is_told_with_its_length(aiperf: Program) -> None:
    """The server dies in mid-run, stays away for four seconds, and comes back at its address."""
    load: list[str | float] = ["--concurrency", 2, "--request-count", 2000]
    simulate: dict[str, Any] = {"first_token_ms": 5, "decode_ms": 1, "decode_batch_us": 0}
    with running(**simulate) as simulator:
        run = aiperf.start(*START, *load, "--url", simulator.url)
        wait_for(lambda: answered(simulator) > 20)
    time.sleep(4)
    with running(**simulate, port=int(simulator.url.rpartition(":")[2])) as simulator:
        wait_for(lambda: answered(simulator) > 20)
        run.interrupt()
        done = run.end()
    (away,) = [line for line in done.err.splitlines() if "no connection to the server for" in line]
    assert "no connection to the server for 3 s, " in away or "no connection to the server for 4 s, " in away
    assert "Connection refused" in away
    (back,) = [line for line in done.json()["warnings"] if "reached again" in line]
    length, failed = r"the server is reached again, after \d+\.\d s without a connection", refusals(done)
    assert re.fullmatch(rf"{length}, {failed} requests failed meanwhile", back)
    assert back in done.err


def test_connections_that_are_never_accepted_are_told(aiperf: Program) -> None:
    """A host that drops what is sent to it: a queue of one that nobody empties takes no more."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        load: list[str | float] = ["--concurrency", 2, "--request-count", 9, "--unreachable-timeout", 3.5]
        done = aiperf(*START, *load, "--url", f"http://127.0.0.1:{full.getsockname()[1]}")
    assert done.code == 1
    assert "no connection to the server for 3 s, 0 requests failed meanwhile: no attempt to connect has an answer" in done.err
    assert "results are partial: no connection could be opened for 3.5 s (no attempt" in done.err
    outcomes = [row["outcome"] for row in done.lines("profile_export_arrivals.jsonl")]
    assert (len(outcomes), set(outcomes)) == (9, {"aborted", "never_sent"})


def test_a_run_that_reached_its_server_waits_for_it_to_come_back(aiperf: Program) -> None:
    load: list[str | float] = ["--concurrency", 2, "--benchmark-duration", 3]
    with running(first_token_ms=1, decode_ms=0.1) as simulator:
        run = aiperf.start(*START, *load, "--url", simulator.url)
        wait_for(lambda: answered(simulator) > 60)
    done = run.end()
    assert done.code == 0, done.err
    assert refusals(done) > 0
    assert reasons(done)
