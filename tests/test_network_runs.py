"""Runs that measure the round trip of the network."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Program
from two_networks import CLIENT, SERVER, Namespace, NoNetworksError, two_networks

LOAD = ("--model", "m", "--streaming", "--tokenizer", "builtin", "--isl", 20, "--osl", 4, "--ui", "none")
ADJUSTED = ("time_to_first_token", "time_to_first_output_token", "request_latency")


@contextmanager
def simulator_in(namespace: Namespace) -> Iterator[str]:
    """The URL of a simulator there."""
    words = [sys.executable, "-m", "aiperf", "simulate", "--host", SERVER, "--port", 0]
    with subprocess.Popen(namespace.command(words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().partition("listening on ")[2].strip()
        finally:
            process.send_signal(signal.SIGINT)


def less(results: dict[str, Any], tag: str, statistic: str) -> float:
    """How much the adjusted latency is less than the plain one."""
    plain, adjusted = results[tag], results[f"network_adjusted_{tag}"]
    assert plain["count"] == adjusted["count"]
    return float(plain[statistic] - adjusted[statistic])


@pytest.mark.timing
def test_the_round_trip_through_a_slow_wire_is_measured(tmp_path: Path) -> None:
    """Packets take 5 ms each way."""
    try:
        with two_networks(0.005) as (here, there, _), simulator_in(there) as url:
            words = [sys.executable, "-m", "aiperf", "profile", *LOAD, "--url", url, "--artifact-dir", tmp_path / "run",
                     "--request-rate", 20, "--request-count", 40, "--network-latency-automatic",
                     "--network-latency-ping-interval", 0.2, "--no-gpu-telemetry"]  # fmt: skip
            done = subprocess.run(here.command(words), capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False)
    except NoNetworksError as error:
        pytest.skip(f"no two networks here: {error}")
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "run" / "profile_export_aiperf.json").read_text())
    assert results["network_rtt"]["avg"] == pytest.approx(10.0, rel=0.1)
    for tag in ADJUSTED:
        assert less(results, tag, "p99") == pytest.approx(results["network_rtt"]["avg"])
    (row,) = results["network_latency"]
    assert row["server"] == url and row["failed"] == 0 and row["probes"] >= 8
    # A request and its answer travel, and before some of them a connection is made.
    assert 9.0 < row["first_token_client_less_server"] < 30.0
    assert CLIENT not in done.stderr


def test_a_run_has_the_round_trip_its_probes_and_latencies_without_it(tmp_path: Path) -> None:
    with running(decode_ms=1) as simulator:
        aiperf = Program(tmp_path)
        done = aiperf("profile", *LOAD, "--url", simulator.url, "--request-count", 10, "--network-latency-automatic",
            "--network-latency-ping-interval", 0.1)  # fmt: skip
        assert done.code == 0, done.err
        connections = simulator.summary()["connections"]
    results, lines = done.json(), done.lines("profile_export_network_latency.jsonl")
    assert 0 < results["network_rtt"]["avg"] < 50 and results["network_rtt"]["p99"] == results["network_rtt"]["avg"]
    assert len(lines) >= 3 and all(line["success"] and line["target_url"] == simulator.url for line in lines)
    assert connections >= len(lines)
    for tag in ADJUSTED:
        assert less(results, tag, "max") == pytest.approx(results["network_rtt"]["avg"])
    assert "Network RTT (ms)" in done.out and "Round trip of the network" in done.out
    assert aiperf("validate", done.artifacts).code == 0
    told = aiperf("report", done.artifacts)
    assert told.code == 0 and "Network RTT (ms)" in told.out


def test_a_round_trip_that_is_known_is_taken_off(tmp_path: Path) -> None:
    with running(decode_ms=1) as simulator:
        done = Program(tmp_path)("profile", *LOAD, "--url", simulator.url, "--request-count", 5,
            "--network-latency-mean", 0.25)  # fmt: skip
        assert done.code == 0, done.err
    results = done.json()
    assert results["network_rtt"]["avg"] == 0.25
    assert less(results, "request_latency", "p50") == pytest.approx(0.25)
    assert not (done.artifacts / "profile_export_network_latency.jsonl").exists()
    assert not list((done.artifacts / "journal").glob("telemetry-*"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--network-latency-automatic", "--network-latency-mean", 3], 1, "--network-latency-automatic measures the"),
        (["--network-latency-ping-interval", 1], 1, "nothing is measured"),
        (["--network-latency-mean", -1], 2, "--network-latency-mean: -1 is not allowed; must be at least 0"),
        (["--network-latency-automatic", "--network-latency-ping-interval", 0], 2, "--network-latency-ping-interval: 0"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_sent(
    tmp_path: Path, words: list[str | float], code: int, said: str
) -> None:
    done = Program(tmp_path)("profile", *LOAD, "--url", "http://127.0.0.1:1", *words)
    assert done.code == code and said in done.err
