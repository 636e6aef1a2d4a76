"""The check of logs at the end of a session finds tracebacks, and excuses tests that are marked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from requirements import ROOT

pytestmark = pytest.mark.traceback

TESTS = """
import pytest

LOG = "a bug\\nTraceback (most recent call last):\\n  File 'x', line 1\\nKeyError: 'x'\\n12:00:01 - end\\n"


def write(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "aiperf.log").write_text(LOG)


def test_unmarked(tmp_path):
    write(tmp_path)


@pytest.mark.traceback
def test_marked(tmp_path):
    write(tmp_path)
"""


def session(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (folder / "test_logs.py").write_text(TESTS)
    command = [
        sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-o", f"pythonpath={ROOT / 'tests'}",
        "--basetemp", str(folder / "base"), *words,
    ]  # fmt: skip
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=180)


def test_a_traceback_in_a_log_fails_the_session_with_its_place(tmp_path: Path) -> None:
    done = session(tmp_path)
    assert done.returncode == 1
    assert "2 passed, 1 error" in done.stdout
    assert f"{tmp_path}/base/test_unmarked0/logs/aiperf.log:2: KeyError: 'x'" in done.stdout
    assert "test_marked0" not in done.stdout


def test_a_worker_of_xdist_checks_its_own_logs(tmp_path: Path) -> None:
    done = session(tmp_path, "-n", "1")
    assert done.returncode == 1
    assert "base/popen-gw0/test_unmarked0/logs/aiperf.log:2: KeyError: 'x'" in done.stdout


def test_a_session_with_excused_tracebacks_passes(tmp_path: Path) -> None:
    done = session(tmp_path, "-k", "test_marked")
    assert (done.returncode, "1 passed, 1 deselected" in done.stdout) == (0, True), done.stdout
