"""Beside two processes that never rest, results are made soon, and a killed run is gone soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import busy_table
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="priorities and signals of Linux")

STUCK = "from aiperf.processes.local import end_with_parent\nend_with_parent()\nprint('on', flush=True)\nsum(range(10**12))"


def test_a_process_in_the_middle_of_a_long_call_ends_with_its_parent() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    process.stdin.close()
    assert process.wait(60) == -9
    process.stdout.close()


def test_a_process_whose_parent_has_gone_before_ends_at_once() -> None:
    read, write = os.pipe()
    os.close(write)
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdin=read, stdout=subprocess.DEVNULL, process_group=0)
    os.close(read)
    assert process.wait(60) == -9


@pytest.mark.timing
@pytest.mark.parametrize("user", busy_table.USERS)
def test_six_requests_are_reduced_soon(user: str, tmp_path: Path) -> None:
    assert busy_table.reduced_s(user, tmp_path) < busy_table.REDUCED_S


@pytest.mark.timing
@pytest.mark.skipif(os.cpu_count() == 1, reason="two busy processes leave a single core to nobody")
def test_a_killed_run_is_gone_soon(tmp_path: Path) -> None:
    assert busy_table.slowest_end_s("ordinary user", tmp_path, 3) < busy_table.GONE_S
