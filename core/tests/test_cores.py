"""Short slices of a core are asked for, and nothing else changes.  tests/test_timing.py looks at a run's workers."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf import cores

ASK = """
import os
from aiperf.cores import ask_for_short_slices
os.nice(3)
{before}
print(ask_for_short_slices(), os.getpriority(os.PRIO_PROCESS, 0))
"""


def asked(before: str = "") -> list[str]:
    """What the function returns in a process of its own, and its nice value then."""
    done = subprocess.run([sys.executable, "-c", ASK.format(before=before)], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="the call has another number")
def test_the_nice_value_stays() -> None:
    assert asked() == ["True", str(os.nice(0) + 3)]


def test_another_policy_than_the_usual_one_stays() -> None:
    assert asked("os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))")[0] == "False"


def test_a_machine_that_is_not_known_is_left_alone() -> None:
    assert asked("import platform; platform.machine = lambda: 'abacus'")[0] == "False"


@pytest.mark.parametrize(("parents", "nice"), [("/autogroup-7 nice 3\n", "3"), ("", "0")])
def test_a_session_gets_the_priority_of_its_parents(
    parents: str, nice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, of_parent = tmp_path / "own", tmp_path / "parent"
    group.write_text("/autogroup-8 nice 10\n")
    of_parent.write_text(parents)
    files = {f"/proc/{os.getpid()}/autogroup": group, f"/proc/{os.getppid()}/autogroup": of_parent}
    monkeypatch.setattr(cores, "Path", files.__getitem__)
    monkeypatch.setattr(os, "getsid", lambda pid: pid)
    assert cores.level_with_parent(os.getpid()) is True
    assert group.read_text() == nice
