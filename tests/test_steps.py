"""Work before and behind the load that takes long is shown: on a terminal redrawn, elsewhere in one line of the log."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator

SLOW = """
import sys, time
from aiperf.__main__ import main
from aiperf.run import builder, children, steps
from aiperf.rundir import artifacts
from aiperf_companion_readiness import wait

steps._FIRST_S, steps._EVERY_S = 0.0, 0.02


def later(method, seconds=0.3):
    asked_s = []

    def asked(self, *arguments):
        asked_s.append(time.monotonic())
        return asked_s[-1] - asked_s[0] > seconds and method(self, *arguments)

    return asked


class Late(set):
    asked_s = 0.0

    def __len__(self):
        self.asked_s = self.asked_s or time.monotonic()
        return super().__len__() if time.monotonic() - self.asked_s > 0.3 else 0


def hears_late(self, *arguments):
    make_mailbox(self, *arguments)
    self.reduced = Late()


def slowly(self):
    time.sleep(0.2)
    begin(self)


builder.Builder.poll, wait.Wait.over = later(builder.Builder.poll), later(wait.Wait.over)
begin, artifacts.Export.begin = artifacts.Export.begin, slowly
make_mailbox, children.Mailbox.__init__ = children.Mailbox.__init__, hears_late
sys.argv[0] = "aiperf"
sys.exit(main())
"""
STEPS = (
    "Making the data set: ", "Waiting for ", "Starting the processes", "Reducing the rest: ", "Making the summary",
    "Writing the files",
)  # fmt: skip


def run(simulator: Simulator, folder: Path, errors: int, *words: str) -> str:
    """Standard output of a run of three requests in which every step is slow."""
    command = [sys.executable, "-P", "-c", SLOW, "profile", "--model", "m", "--url", simulator.url, "--request-count", "3",
        "--isl", "8", "--osl", "2", "--tokenizer", "builtin", "--wait-for-model-timeout", "30", "--artifact-dir", str(folder),
        *words]  # fmt: skip
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.run(command, check=True, stdin=nothing, stdout=pipe, stderr=errors, timeout=600, text=True).stdout


def test_a_terminal_shows_every_slow_step(simulator: Simulator, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        report = run(simulator, tmp_path / "run", theirs, "--ui", "simple")
        os.set_blocking(ours, False)
        drawn = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(ours, 1 << 16):
                drawn += piece
    finally:
        os.close(ours)
        os.close(theirs)
    shown = [line.partition("\x1b[K")[2] for line in drawn.decode().split("\r")]
    for step in STEPS:
        assert any(line.startswith(step) for line in shown), step
    assert any(line.startswith("Reducing the rest: ") and " of 3 requests, 0:0" in line for line in shown)
    assert "Making the data set" not in (tmp_path / "run" / "logs" / "aiperf.log").read_text()
    assert "Request Latency" in report


@pytest.mark.parametrize("words", [("--ui", "none"), ("--ui", "simple")], ids=" ".join)
def test_without_a_terminal_each_slow_step_is_one_line(simulator: Simulator, tmp_path: Path, words: tuple[str, str]) -> None:
    with (tmp_path / "errors").open("w+b") as errors:
        run(simulator, tmp_path / "run", errors.fileno(), *words)
    said = (tmp_path / "errors").read_text().splitlines()
    assert not any("\x1b" in line or "\r" in line for line in said)
    for step in STEPS:
        count = sum(f" {step}" in line for line in said)
        assert count == 1 if step != "Waiting for " else count <= 1, (step, said)  # the wait logs by itself while it lasts
