"""Calls of gRPC that end as they shouldn't: each failure has its name in the report, and the server's row says the same."""

from __future__ import annotations

import json
from pathlib import Path

from aiperf_command_simulate.testing import Simulator
from program import Program

FAULTS = {
    "no_done": (500, "InvalidGrpcAnswer", "the answer ends without grpc-status"),
    "compressed=gzip": (None, "BadMessage", "a message is compressed, though no compression was offered"),
    "compressed=identity": (None, "BadMessage", "a message is compressed, though no compression was offered"),
    "cut=1": (None, "ConnectionResetError", "the server closed the connection before a whole answer was in"),
    "reset=1": (None, "StreamReset", "the server ended the stream: INTERNAL_ERROR"),
    "fail=503": (503, "UNAVAILABLE", "the simulator was told to fail with status 503"),
    "fail=404": (404, "NOT_FOUND", "the simulator was told to fail with status 404"),
    "error=2": (500, "INTERNAL", "the simulator was told to fail here"),
}
"""The code, type and message of an error, by what the server was told."""


def test_each_failure_of_a_call_has_its_name(tmp_path: Path, simulator: Simulator) -> None:
    rows = [{"messages": [{"text": "a b c"}], "metadata": {"x-simulate": fault}} for fault in FAULTS]
    rows += [{"messages": [{"text": text}], "metadata": {}} for text in ("a b c", "")]  # the latter has no answer message
    (tmp_path / "calls.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = Program(tmp_path)(
        "profile", "-m", "m", "-u", simulator.url.removeprefix("http://"), "--endpoint-type", "dynamic_grpc", "--grpc-method",
        "aiperf.simulate.Echo/Down", "--input-file", tmp_path / "calls.jsonl", "--request-count", len(rows), "--ui", "none",
        "--dataset-sampling-strategy", "sequential",
    )  # fmt: skip
    assert (done.code, "8 of 10 requests failed" in done.err) == (1, True), done.err
    told = [
        (each["count"], each["error_details"].get("code"), each["error_details"]["type"], each["error_details"]["message"])
        for each in done.json()["error_summary"]
    ]
    expected = list(FAULTS.values())
    assert sorted(told, key=str) == sorted({(expected.count(each), *each) for each in expected}, key=str)
    assert done.json()["request_count"]["avg"] == done.json()["request_latency"]["count"] == 2
    assert done.json()["outcomes"] == {"completed": 2, "failed": 2, "cut": 6}  # a call that is refused never began
    outcomes = [row["outcome"] for row in simulator.truth()["requests"]]
    for outcome, count in {"cut": 1, "reset": 1, "failed": 1, "refused": 1, "error said in-band": 1}.items():
        assert outcomes.count(outcome) == count, outcomes


def test_a_deadline_is_told_to_the_server(tmp_path: Path, simulator: Simulator) -> None:
    done = Program(tmp_path)(
        "profile", "-m", "m", "-u", simulator.url.removeprefix("http://"), "--endpoint-type", "kserve", "--streaming",
        "--tokenizer", "builtin", "--isl", 5, "--request-count", 2, "-H", "X-Simulate: silent", "--ui", "none",
        "--request-timeout-seconds", 0.3,
    )  # fmt: skip
    assert done.code == 1
    assert {each["error_details"]["code"] for each in done.json()["error_summary"]} == {504}
    assert {row["outcome"] for row in simulator.truth()["requests"]} <= {"deadline exceeded", "client disconnected"}
