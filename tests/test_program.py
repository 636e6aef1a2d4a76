"""How tests start the program."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import ledger
from program import Program
from warm import USUAL


def test_a_command_that_nobody_disturbs_is_a_fork(aiperf: Program) -> None:
    aiperf.environment["AIPERF_WORKERS"] = "1"  # which the program reads itself
    assert aiperf.is_usual(), "every run of the tests costs three times as much"


def test_a_command_with_a_variable_of_its_own_is_no_fork(aiperf: Program) -> None:
    aiperf.environment["PYTHONPATH"] = str(aiperf.folder)
    assert not aiperf.is_usual()


def test_what_is_imported_before_the_forks_exists() -> None:
    assert not [name for name in USUAL if find_spec(name) is None]


def test_packages_of_a_test_are_found_in_a_fork(tmp_path: Path) -> None:
    ledger.install(tmp_path / "site")
    program = Program(tmp_path, site=tmp_path / "site")
    assert program.is_usual()
    assert "ledger" in program("plugins", "exporters").out
    assert "ledger" not in Program(tmp_path)("plugins", "exporters").out
