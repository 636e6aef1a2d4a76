"""Runs over HTTP/2: what the server saw of shared connections."""

from __future__ import annotations

from aiperf_command_simulate.testing import Simulator
from program import Program


def test_cancelled_requests_leave_those_beside_them(aiperf: Program, simulator: Simulator) -> None:
    load = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--osl", 100, "--request-count", 60, "--concurrency", 12)
    cancel = ("--request-cancellation-rate", 30, "--request-cancellation-delay", 0.003, "--random-seed", 5)
    done = aiperf("profile", "--url", simulator.url, "--endpoint-type", "chat", "--streaming", "--transport", "http2", *load,
                  *cancel, "--workers", 1, "--streams-per-connection", 5, "--ui", "none")  # fmt: skip
    assert "Traceback" not in done.err, done.err
    measured, seen = done.json()["measurement"], simulator.truth()
    ends = measured["arrivals"]
    assert ends["completed"] + ends["cancelled"] == 60 and ends["completed"] >= 30 > ends["cancelled"] > 3, ends
    outcomes = seen["summary"]["outcomes"]
    assert sum(outcomes.values()) == 60 and outcomes["completed"] >= ends["completed"], outcomes
    assert len({row["connection"] for row in seen["requests"]}) == 3, "twelve at once, five on a connection"
    assert measured["streams_per_connection"] == 5 and measured["reconnected"] == 0
