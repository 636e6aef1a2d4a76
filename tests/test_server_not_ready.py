"""A run that waits for its server: what the server sees of it, and how the wait ends."""

from __future__ import annotations

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program, wait_for

START: list[str | float] = ["profile", "--model", "m", "--tokenizer", "builtin", "--isl", "10", "--request-count", 4]
OFTEN: list[str | float] = ["--wait-for-model-interval", 0.1]


def asked(simulator: Simulator) -> int:
    count: int = simulator.summary()["requests"]
    return count


@pytest.mark.parametrize("mode", ["models", "inference", "both"])
def test_nothing_is_measured_before_the_server_is_ready(aiperf: Program, mode: str) -> None:
    with running(ready_after_requests=5, models=["m"], first_token_ms=1, decode_ms=1) as simulator:
        done = aiperf(*START, "--url", simulator.url, *OFTEN, "--wait-for-model-timeout", 60, "--wait-for-model-mode", mode)
        rows = simulator.truth()["requests"]
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == 4
    assert done.json()["error_summary"] == []
    assert f"Waiting for {simulator.url}: " in done.err
    assert "503 Service Unavailable" in done.err
    probes = 0 if mode == "models" else 1
    assert [row["status"] for row in rows if row["status"] != 503] == [200] * (4 + probes)
    lengths = [row["completion_tokens"] for row in rows if row["status"] == 200]
    assert lengths[:probes] == [1] * probes, "the request to ask with is one token long"


def test_a_server_that_does_not_get_ready_ends_the_run_with_1(aiperf: Program) -> None:
    with running(ready_after_s=600) as simulator:
        done = aiperf(*START, "--url", simulator.url, *OFTEN, "--wait-for-model-timeout", 0.5)
    assert done.code == 1
    assert f"error: not ready within 0.5 s: {simulator.url}: it answers with 503 Service Unavailable" in done.err
    assert not list(done.artifacts.glob("profile_export*"))


def test_a_model_that_is_not_served_is_named(aiperf: Program) -> None:
    with running(models=["other"]) as simulator:
        waiting: list[str | float] = ["--wait-for-model-timeout", 0.5, "--wait-for-model-mode", "models"]
        done = aiperf(*START, "--url", simulator.url, *OFTEN, *waiting)
    assert done.code == 1
    assert "it lists other, not m" in done.err


def test_ctrl_c_ends_the_wait_at_once(aiperf: Program) -> None:
    with running(ready_after_s=600) as simulator:
        run = aiperf.start(*START, "--url", simulator.url, "--wait-for-model-timeout", 500, "--wait-for-model-interval", 400)
        wait_for(lambda: asked(simulator) > 0)
        run.interrupt()
        done = run.end(180)  # nobody waits for the next look at the server
    assert done.code == 130
    assert run.survivors() == []
