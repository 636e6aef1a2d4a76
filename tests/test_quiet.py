"""``--quiet`` prints the report and errors; progress, log lines and warnings go to the log file."""

from __future__ import annotations

import os
import pty
import subprocess

from aiperf_command_simulate.testing import Simulator
from program import Program

DEAD = "http://127.0.0.1:9"
LOAD = ("--model", "m", "--tokenizer", "builtin", "--isl", 8, "--osl", 4, "--request-count", 4)


def test_a_quiet_run_prints_the_report_alone_on_a_terminal(aiperf: Program, simulator: Simulator) -> None:
    words = map(str, ("profile", "--url", simulator.url, *LOAD, "--quiet", "--artifact-dir", aiperf.folder / "quiet"))
    environment = {**aiperf.environment, "TERM": "xterm", "AIPERF_NONSENSE_S": "3"}
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*aiperf.program, *words], cwd=aiperf.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=theirs, text=True, check=True,
    )  # fmt: skip
    os.set_blocking(ours, False)
    os.close(theirs)
    try:
        seen = os.read(ours, 1 << 16)
    except OSError:  # nothing was written before the other end was closed
        seen = b""
    assert seen == b"", seen
    assert "Request Latency" in done.stdout and "Log File: " in done.stdout and simulator.summary()["requests"] == 4
    log = (aiperf.folder / "quiet" / "logs" / "aiperf.log").read_text()
    assert "AIPERF_NONSENSE_S" in log, "what is wrong before the run begins"
    assert "WARNING" in log.partition("answers may be shorter")[0], "what the data set's process says"


def test_a_quiet_run_tells_its_errors(aiperf: Program) -> None:
    words = ("--unreachable-timeout", 0.2, "-q", "--artifact-dir", aiperf.folder / "dead")
    dead = aiperf("profile", "--url", DEAD, *LOAD, *words)
    assert dead.code == 1 and "aiperf: no request succeeded" in dead.err
    wrong = aiperf("profile", "--url", DEAD, *LOAD, "-q", "--num-users", 3)
    assert wrong.code == 1 and "error: --num-users" in wrong.err, wrong.err


def test_quiet_excludes_what_shows_a_run(aiperf: Program) -> None:
    for words, sentence in (
        (("--ui", "simple"), "error: --ui simple and --quiet exclude each other: one shows the run"),
        (("-v",), "error: -v and --quiet exclude each other: one prints more of the log"),
    ):
        refused = aiperf("profile", "--url", DEAD, *LOAD, "--quiet", *words)
        assert refused.code == 1 and sentence in refused.err, refused.err
