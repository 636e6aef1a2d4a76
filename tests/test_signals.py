"""Ctrl-C once and twice, SIGTERM and SIGHUP: what is sent, what is written, how it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, Running, wait_for

STREAMS = 4


@pytest.fixture
def slow() -> Iterator[Simulator]:
    """A server whose answers take twenty seconds."""
    with running(first_token_ms=20, decode_ms=20, decode_batch_us=0, tokens=1000) as simulator:
        yield simulator


def begin(aiperf: Program, simulator: Simulator, grace_s: float = 0.5) -> Running:
    """Start a run and wait until every stream is under way."""
    run = aiperf.start(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10,
        "--concurrency", STREAMS, "--benchmark-duration", 60, "--ui", "none",
        "--benchmark-grace-period", grace_s,
    )  # fmt: skip
    wait_for(lambda: bool(simulator.summary()["in_flight"] == STREAMS))
    return run


def partial(run: Running, code: int) -> None:
    """It ends with this code, writes what it has, and marks it."""
    done = run.end()
    assert done.code == code, done.err
    report = done.json()
    assert report["was_cancelled"] is True
    assert report["is_complete"] is False
    assert report["incomplete_reason"]
    arrivals = report["measurement"]["arrivals"]
    assert arrivals["aborted_in_flight"] == STREAMS
    assert arrivals["errors"] == 0, "what we cut is no error of the server's"
    assert len(done.lines("profile_export_arrivals.jsonl")) == arrivals["planned"]
    assert (done.artifacts / "profile_export_aiperf.csv").stat().st_size > 0
    assert "INCOMPLETE RESULTS" in done.out
    assert run.survivors() == []


def test_ctrl_c_writes_what_there_is_and_exits_130(aiperf: Program, slow: Simulator) -> None:
    run = begin(aiperf, slow)
    run.interrupt()
    partial(run, 130)


def test_sigterm_does_the_same_and_exits_143(aiperf: Program, slow: Simulator) -> None:
    run = begin(aiperf, slow)
    run.terminate()
    partial(run, 143)


def test_sighup_does_the_same_and_exits_129(aiperf: Program, slow: Simulator) -> None:
    run = begin(aiperf, slow)
    run.process.send_signal(signal.SIGHUP)
    partial(run, 129)


def test_sighup_that_was_ignored_at_the_start_stays_ignored(aiperf: Program, slow: Simulator) -> None:
    aiperf.program = ["nohup", *aiperf.program]
    run = begin(aiperf, slow)
    run.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # nothing tells that a signal was ignored
    run.terminate()
    partial(run, 143)


def test_sighup_waits_for_no_reader_of_a_full_pipe() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(theirs, b"." * 4096):
            pass
    os.set_blocking(theirs, True)
    code = "from aiperf.run.start import Signals; import signal; Signals()._note(signal.SIGHUP, None)"
    try:
        subprocess.run([sys.executable, "-c", code], stdout=theirs, timeout=60, check=True)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_that_is_closed_ends_the_run_with_its_results(aiperf: Program, slow: Simulator) -> None:
    ours, theirs = pty.openpty()
    artifacts = aiperf.folder / "artifacts"
    words = (
        "profile", "--model", "m", "--url", slow.url, "--streaming", "--tokenizer", "builtin", "--isl", 10, "--concurrency",
        STREAMS, "--benchmark-duration", 60, "--benchmark-grace-period", 0.5, "--artifact-dir", artifacts,
    )  # fmt: skip
    process = subprocess.Popen(
        [*aiperf.program, *map(str, words)], env=aiperf.environment, cwd=aiperf.folder, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    wait_for(lambda: bool(slow.summary()["in_flight"] == STREAMS))
    os.close(ours)  # the kernel sends SIGHUP, and every write to the terminal fails from now on
    assert process.wait(60) == 129
    done = Done(129, "", "", artifacts)
    assert done.json()["was_cancelled"] is True and done.json()["measurement"]["arrivals"]["aborted_in_flight"] == STREAMS


def test_requests_in_flight_may_finish_after_the_first_ctrl_c(aiperf: Program) -> None:
    with running(first_token_ms=20, decode_ms=20, decode_batch_us=0, tokens=40) as simulator:
        run = aiperf.start(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10,
            "--concurrency", STREAMS, "--benchmark-duration", 60, "--ui", "none",
        )  # fmt: skip
        wait_for(lambda: bool(simulator.summary()["requests"] > STREAMS))
        run.interrupt()
        done = run.end()
        truth = simulator.truth()["requests"]
    assert done.code == 130
    arrivals = done.json()["measurement"]["arrivals"]
    assert arrivals["aborted_in_flight"] == 0
    assert arrivals["completed"] == len(truth)
    assert done.json()["measurement"]["verdict"] != "trustworthy"
    assert {row["outcome"] for row in truth} == {"completed"}


def test_a_run_that_is_stopped_and_continued_says_so(aiperf: Program) -> None:
    with running(first_token_ms=20, decode_ms=20, decode_batch_us=0, tokens=20) as simulator:
        run = aiperf.start(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10,
            "--concurrency", STREAMS, "--request-count", 32, "--ui", "none",
        )  # fmt: skip
        wait_for(lambda: bool(simulator.summary()["requests"] > 2 * STREAMS))
        run.signal_all(signal.SIGSTOP)
        time.sleep(1.5)
        run.signal_all(signal.SIGCONT)
        done = run.end()
    assert done.code == 0, done.err
    measurement = done.json()["measurement"]
    assert measurement["verdict"] == "suspect"
    (told,) = [reason for reason in measurement["reasons"] if "stood still for" in reason]
    seconds = float(told.partition(" stood still for ")[2].split()[0])
    assert seconds >= 1.4 and "stopped by a signal, or the machine slept" in told, told
    assert "stood still" in done.out
    again = aiperf("report", done.artifacts)
    assert told in " ".join(again.out.split())


def test_a_second_ctrl_c_ends_the_run_and_keeps_the_journal(aiperf: Program, slow: Simulator) -> None:
    run = begin(aiperf, slow, grace_s=30)
    run.interrupt()
    run.hears("aiperf: stopping")  # two signals that wait together are one
    assert slow.summary()["in_flight"] == STREAMS
    run.interrupt()
    done = run.end()
    assert done.code == 130
    assert "aiperf report" in done.err
    assert not list(done.artifacts.glob("profile_export_aiperf.json"))
    assert run.survivors() == []
    again = aiperf("report", done.artifacts)
    assert again.code == 0, again.err
    report = done.json()
    assert report["measurement"]["arrivals"]["sent"] == STREAMS
    assert (report["is_complete"], report["was_cancelled"]) == (False, True)
    assert re.search(r"phase \S+ was seen for [\d.]+ of 60 s", report["incomplete_reason"])
    assert f"aiperf: results are partial: {report['incomplete_reason']}" in again.err


def test_ctrl_c_before_anything_was_sent_leaves_nothing_running(aiperf: Program, slow: Simulator) -> None:
    run = aiperf.start("profile", "--model", "m", "--url", slow.url, "--tokenizer", "builtin", "--isl", 10, "--ui", "none")
    wait_for((run.artifacts / "journal").exists)
    run.interrupt()
    done = run.end()
    assert done.code == 130
    assert run.survivors() == []
