"""Whole runs against sockets of this machine: --url unix:///PATH."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from program import Program

LOAD = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--osl", 6, "--request-count", 8, "--concurrency", 2,
        "--ui", "none", "--streaming")  # fmt: skip


@pytest.mark.parametrize("words", [
    ("--wait-for-model-timeout", 60, "--wait-for-model-mode", "both"),
    pytest.param(("--transport", "http2"), marks=pytest.mark.long),
    pytest.param(("--endpoint-type", "kserve", "--wait-for-model-timeout", 60), marks=pytest.mark.long),
], ids=["http1", "http2", "grpc"])  # fmt: skip
def test_a_socket_of_this_machine_is_measured(words: tuple[str | int, ...], aiperf: Program, tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with running(unix=path, decode_ms=2.0, models=["m"]) as simulator:
        done = aiperf("profile", "--url", f"unix://{path}", *LOAD, *words)
        assert done.code == 0, done.err
        waited = sum(word == "--wait-for-model-mode" for word in words)
        assert simulator.summary()["requests"] == 8 + waited, "the question whether it is ready is one"
    results = done.json()
    assert results["request_count"]["avg"] == 8 and results["time_to_first_token"]["min"] > 0
    measured = results["measurement"]
    assert (measured["clock"], measured["stamps_missing"]) == ("read", 0), "no stamp of the kernel was promised"
    assert not [reason for reason in measured["reasons"] if "stamp" in reason]


def test_a_path_without_a_server_is_a_sentence(aiperf: Program, tmp_path: Path) -> None:
    done = aiperf("profile", "--url", f"unix://{tmp_path}/no.sock", *LOAD, "--unreachable-timeout", 0.5)
    assert done.code == 1 and "Traceback" not in done.err, done.err
    assert f"nothing listens at -u unix://{tmp_path}/no.sock: is the server up, and is this its socket?" in done.err + done.out
    (tmp_path / "file").touch()
    refused = aiperf("profile", "--url", f"unix://{tmp_path}/file", *LOAD)
    assert refused.code == 1 and "is a file, not a socket" in refused.err
