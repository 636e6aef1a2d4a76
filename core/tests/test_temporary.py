"""Temporary directories: what a killed process leaves is swept, what is in use stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from aiperf.parts.processes import temporary_directory
from aiperf.rundir.temporary import sweep

HOLDS = """
import time
from aiperf.parts.processes import temporary_directory

with temporary_directory("report") as folder:
    (folder / "rows").write_text("half a report")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_directory_is_empty_and_gone_after_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_directory("report") as folder:
        assert list(folder.iterdir()) == [] and folder.parent.name.startswith("aiperf-report-")
        sweep(tmp_path)
        assert folder.exists(), "it is in use"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_command_leaves_is_swept(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        sweep(tmp_path)
        kept = (folder / "rows").exists()
        process.send_signal(signal.SIGKILL)
    assert kept, "a command that works keeps its own"
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
