"""Every mistake gets a sentence, the right exit code and no traceback (Program sees to the last)."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program


def profile(url: str, *more: str, requests: int = 4) -> list[str]:
    start = ["profile", "--model", "m", "--url", url, "--tokenizer", "builtin", "--isl", "10"]
    return [*start, "--request-count", str(requests), *more]


def errors(report: dict[str, object]) -> dict[object, int]:
    """Counts by kind: the code where there is one, else the type."""
    summary = report["error_summary"]
    assert isinstance(summary, list)
    return {row["error_details"].get("code") or row["error_details"]["type"]: row["count"] for row in summary}


def test_no_model(aiperf: Program) -> None:
    done = aiperf("profile")
    assert done.code == 1
    assert "--model" in done.err
    assert "cli-config" not in done.err


def test_a_model_whose_tokenizer_cannot_be_had(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(aiperf.folder / "hub")}
    done = aiperf("profile", "--model", "nobody/has-this", "--url", simulator.url, "--request-count", 2)
    assert done.code == 1
    assert "nobody/has-this" in done.err
    assert "--tokenizer builtin" in done.err
    assert simulator.summary()["requests"] == 0


def test_an_unreachable_server(aiperf: Program) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        done = aiperf(*profile(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert done.code == 1
    report = done.json()
    assert sum(errors(report).values()) == 4
    assert report["error_request_count"]["avg"] == 4
    assert "no request succeeded" in done.err
    assert len(done.lines("profile_export.jsonl")) == 4
    assert "onnect" in done.out, "the report shows what went wrong"


def test_a_server_that_answers_404_to_everything(aiperf: Program) -> None:
    with running(not_found=True) as simulator:
        done = aiperf(*profile(simulator.url))
    assert done.code == 1
    assert errors(done.json()) == {404: 4}
    assert "404" in done.out


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_nobody_vouches_for(aiperf: Program, tmp_path: Path) -> None:
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    with running(tls_cert=str(cert), tls_key=str(key)) as simulator:
        done = aiperf(*profile(simulator.url))
        assert done.code == 1
        report = done.json()
        assert sum(errors(report).values()) == 4
        assert "certificate" in str(report["error_summary"]).lower()
        taken = aiperf(*profile(simulator.url, "--insecure"))
    assert taken.code == 0
    assert "certificates were not checked (--insecure" in taken.out


def test_an_artifact_directory_that_is_a_file(aiperf: Program, simulator: Simulator) -> None:
    path = aiperf.folder / "taken"
    path.write_text("mine")
    done = aiperf(*profile(simulator.url, "--artifact-dir", str(path)))
    assert done.code == 1
    assert str(path) in done.err
    assert "--artifact-dir" in done.err
    assert path.read_text() == "mine"
    assert simulator.summary()["requests"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--concurrency", "0"], ["--concurrency", "0", "1"]),
        (["--request-rate", "-3"], ["--request-rate", "-3", "0"]),
        (["--request-rate", "inf"], ["--request-rate", "inf"]),
        (["--request-rate", "5", "--arrival-smoothness", "0"], ["--arrival-smoothness", "0"]),
        (["--benchmark-duration", "0"], ["--benchmark-duration"]),
    ],
)
def test_an_option_out_of_range(aiperf: Program, simulator: Simulator, words: list[str], said: list[str]) -> None:
    done = aiperf(*profile(simulator.url, *words))
    assert done.code == 2
    assert [word for word in said if word not in done.err] == []
    assert simulator.summary()["requests"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--num-sessions", "4"],
        ["--request-rate", "5", "--arrival-pattern", "constant", "--arrival-smoothness", "2"],
        ["--concurrency", "50"],
        ["--benchmark-grace-period", "3"],
        ["--warmup-request-count", "2", "--num-warmup-sessions", "2"],
        ["--zmq-host", "127.0.0.1", "--zmq-ipc-path", "here"],
    ],
)
def test_two_options_that_exclude_each_other_are_both_named(aiperf: Program, simulator: Simulator, words: list[str]) -> None:
    done = aiperf(*profile(simulator.url, *words))
    assert done.code == 1
    assert words[-2] in done.err
    assert simulator.summary()["requests"] == 0


def test_an_endpoint_type_nobody_installed(aiperf: Program) -> None:
    done = aiperf("profile", "--model", "m", "--endpoint-type", "chatt")
    assert done.code == 2
    assert "chatt" in done.err
    assert "completions" in done.err, "what is installed"
    assert "did you mean 'chat'?" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["profile", "--concurency", "3"], "--concurrency"),
        (["profile", "--session-concurrency", "3"], "use --concurrency"),
        (["profile", "--max-threads", "3"], "--workers-max"),
        (["profile", "stray"], "stray"),
        (["profile", "--request-count", "many"], "many"),
        (["profle"], "profile"),
        (["plugins", "endpoins"], "endpoints"),
    ],
)
def test_a_command_line_that_cannot_be_read_exits_2(aiperf: Program, words: list[str], said: str) -> None:
    done = aiperf(*words)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert said in done.err
    assert done.out == ""


def test_an_option_that_nothing_resembles_gets_no_hint(aiperf: Program) -> None:
    done = aiperf("profile", "--bogus", "3")
    assert done.code == 2
    assert "did you mean" not in done.err


def test_all_errors_are_reported_together_before_anything_is_started(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf("profile", "--url", simulator.url, "--request-count", 4, "--num-sessions", 4, "--endpoint-type", "chatt")
    assert done.code == 2
    assert [word for word in ("--model", "--num-sessions", "chatt") if word not in done.err] == []
    assert not (aiperf.folder / "artifacts").exists()


def test_some_failures_are_counted_by_kind_and_end_with_0(aiperf: Program) -> None:
    with running(faults=["fail=500@0.3", "fail=429@0.2"], first_token_ms=1, decode_ms=1, tokens=4, seed=3) as simulator:
        done = aiperf(*profile(simulator.url, "--concurrency", "6", requests=60))
        truth = simulator.truth()["requests"]
    assert done.code == 0, done.err
    found = errors(done.json())
    assert set(found) == {429, 500}
    for code, count in found.items():
        assert count == sum(row["status"] == code for row in truth)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--zmq-host", "203.0.113.7"], "--zmq-host 203.0.113.7 is not this machine's loopback"),
        (["--zmq-ipc-path", "x" * 120], "File name too long"),
    ],
)
def test_an_address_control_messages_cannot_use(aiperf: Program, simulator: Simulator, words: list[str], said: str) -> None:
    done = aiperf("profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--request-count", 1, *words)
    assert done.code == 1
    assert said in done.err
    assert simulator.summary()["requests"] == 0


def test_a_trace_is_judged_before_anything_is_sent(aiperf: Program) -> None:
    file = aiperf.folder / "trace.jsonl"
    file.write_text('{"timestamp": 0, "input_length": 700, "output_length": 3, "hash_ids": [1, 2]}\n')
    good = aiperf("validate", "mooncake-trace", "--input", file)
    assert (good.code, good.out) == (0, f"{file}: mooncake_trace: 1 conversation, 1 turn: nothing is wrong\n")
    file.write_text(file.read_text() + '{"timestamp": 5, "input_length": -1}\n')
    bad = aiperf("validate", "dataset", file)
    assert bad.code == 1
    assert bad.out.startswith(f"{file}:2: input_length is -1")
