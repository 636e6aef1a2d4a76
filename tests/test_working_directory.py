"""Python files of the user's working directory: none is ever imported by the program or by a process of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from aiperf.processes.local import SideProcess
from aiperf_command_simulate.testing import Simulator
from program import Program

NAMES = ("heapq", "json", "random", "asyncio", "msgspec", "zmq", "numpy", "logging")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A working directory whose modules carry the names of others, and leave a mark where they are imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + ' ')\n")
    return tmp_path


def imported(folder: Path) -> str:
    marks = folder / "imported"
    return marks.read_text() if marks.exists() else ""


def run(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 10, "--request-count", 4,
        "--streaming", "--api-key", "secret",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == 4


def test_a_run_imports_no_module_of_the_working_directory(hostile: Path, aiperf: Program, simulator: Simulator) -> None:
    run(aiperf, simulator)
    assert imported(hostile) == ""


def test_nor_does_the_installed_command(hostile: Path, aiperf: Program, simulator: Simulator) -> None:
    command = shutil.which("aiperf", path=str(Path(aiperf.python).parent))
    assert command is not None
    aiperf.program = [command]
    run(aiperf, simulator)
    assert imported(hostile) == ""


@pytest.mark.parametrize("module", ["aiperf_companion_telemetry.process", "aiperf.run.display"])
def test_nor_does_a_plugin_process(hostile: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.chdir(hostile)
    process = SideProcess(module)
    process.end(60)
    process.close()
    assert (process.poll(), imported(hostile)) == (0, "")


def test_a_directory_of_pythonpath_stays_importable(aiperf: Program, simulator: Simulator) -> None:
    library = aiperf.folder / "library"
    library.mkdir()
    (library / "sitecustomize.py").write_text(f"""
import os, sys

def tell():
    open({str(aiperf.folder / "imported")!r}, "a").write("there " if {str(library)!r} in sys.path else "lost ")

os.register_at_fork(after_in_child=tell)
tell()
""")
    aiperf.environment["PYTHONPATH"] = str(library)
    run(aiperf, simulator)
    told = imported(aiperf.folder).split()
    assert len(told) >= 3 and set(told) == {"there"}, "of the parent, the worker and the reducer"
