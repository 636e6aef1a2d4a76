"""Requests beside the load in whole runs: before any request, around the profiling phase, and with the run's key."""

from __future__ import annotations

from aiperf_command_simulate.testing import Simulator
from program import Done, Program


def profile(aiperf: Program, url: str, *words: str) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", url, "--tokenizer", "builtin", "--isl", 20, "--osl", 3, "--request-count", 3,
        "--concurrency", 1, "--ui", "none", "--reset-kv-cache", *words,
    )  # fmt: skip


def test_the_cache_is_reset_before_the_run_and_the_profiler_runs_behind_the_warmup(
    aiperf: Program, simulator: Simulator
) -> None:
    done = profile(aiperf, f"{simulator.url}/v1", "--warmup-request-count", "2", "--server-profiler")
    assert done.code == 0, done.err
    calls = [(call["path"], call["requests_before"]) for call in simulator.summary()["calls"]]
    assert calls == [("/reset_prefix_cache", 0), ("/start_profile", 2), ("/stop_profile", 5)]


def test_a_reset_that_fails_ends_the_run_before_any_request(aiperf: Program, simulator: Simulator) -> None:
    done = profile(aiperf, simulator.url, "--reset-kv-cache-path", "/nope", "--api-key", "hunter2")
    assert done.code == 1
    assert f"--reset-kv-cache: {simulator.url}/nope: the server answers 404 Not Found" in done.err
    assert "hunter2" not in done.err + done.out
    assert [request["path"] for request in simulator.truth()["requests"]] == ["/nope"]
