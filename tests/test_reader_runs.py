"""Runs with either reader of sockets, and where the compiled one can't be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import aiperf_reader
import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

WORDS = ["--model", "m", "--tokenizer", "builtin", "--isl", "8", "--osl", "2", "--request-count", "4", "--streaming"]
SAYS = "the workers' loops read the sockets, so that more chunks merge on a busy machine: aiperf-reader has no compiled file"


@pytest.fixture
def uncompiled(aiperf: Program, tmp_path: Path) -> Program:
    """The program with an aiperf-reader that was installed without a compiler."""
    package = tmp_path / "site" / "aiperf_reader"
    package.mkdir(parents=True)
    shutil.copy(Path(aiperf_reader.__file__), package)
    aiperf.environment |= {"PYTHONPATH": str(package.parent)}
    return aiperf


def test_without_a_compiler_the_loops_read_and_one_line_says_so(uncompiled: Program, simulator: Simulator) -> None:
    done = uncompiled("profile", "--url", simulator.url, *WORDS, "--workers", 2)
    assert done.code == 0, done.err
    assert done.json()["measurement"]["reader"] == "python"
    assert done.err.count(SAYS) == 1
    assert (done.artifacts / "logs" / "aiperf.log").read_text().count(SAYS) == 1


def test_a_compiled_reader_that_is_demanded_and_missing_ends_the_run(uncompiled: Program, simulator: Simulator) -> None:
    uncompiled.environment |= {"AIPERF_READER": "compiled"}
    done = uncompiled("profile", "--url", simulator.url, *WORDS)
    assert done.code == 1
    assert "error: AIPERF_READER is compiled, and aiperf-reader has no compiled file for this machine: " in done.err
    assert done.err.rstrip().endswith("AIPERF_READER=python reads without it")
