"""A test fails for what the program does, not for how busy the machine is or how the shell started the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from requirements import ROOT

TESTS = """
import subprocess, sys, time

import pytest
from hypothesis import given, strategies


@given(strategies.integers())
def test_a_slow_example(number):
    time.sleep(0.25 if number == 0 else 0)


def test_a_program_is_ended_by_sighup_and_sigint():
    code = "import signal; print(*(signal.getsignal(n) == signal.SIG_IGN for n in (signal.SIGHUP, signal.SIGINT)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\\n"


@pytest.mark.timing
def test_of_times():
    raise AssertionError
"""


def session(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The tests above where signals are ignored, as under ``nohup`` and behind ``&`` of a script."""
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (folder / "test_each.py").write_text(TESTS)
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-o", f"pythonpath={ROOT / 'tests'}",
               "-o", "markers=timing: of times", "--basetemp", str(folder / "base"), *words]  # fmt: skip

    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    environment = {name: value for name, value in os.environ.items() if name != "TESTS_IGNORE_SIGNALS"}
    return subprocess.run(command, cwd=folder, env=environment, preexec_fn=ignore, capture_output=True, text=True,
                          check=False, timeout=180)  # fmt: skip


def test_neither_slow_examples_nor_ignored_signals_fail_a_test(tmp_path: Path) -> None:
    done = session(tmp_path, "-m", "not timing")
    assert "2 passed" in done.stdout, done.stdout
    workers = session(tmp_path, "-m", "not timing", "-n", "1")
    assert "2 passed" in workers.stdout, workers.stdout


def test_times_are_not_judged_on_a_busy_machine(tmp_path: Path) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        done = session(tmp_path, "-m", "timing", "-rs")
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert "1 skipped" in done.stdout and "the machine is busy" in done.stdout, done.stdout
