"""The kill table in short: every signal, process and moment at least once; ``make nightly`` has all combinations.

Streams are held until what was sent is on disk, so that nothing at all may be lost and no test depends on the machine's speed.
"""

from __future__ import annotations

from pathlib import Path

import kill_table
import pytest
from kill_table import BUILDING, CHANGE, DRAINING, EXPORTING, FIRST, LOAD, REDUCING, WAITING, KillCell

CELLS = [
    KillCell("KILL", "parent", LOAD, "burst"),
    KillCell("KILL", "parent", WAITING, "request_rate"),
    KillCell("INT", "parent", FIRST, "request_rate"),
    KillCell("INT", "parent", EXPORTING, "burst"),
    KillCell("INT", "parent", REDUCING, "burst"),
    KillCell("2 x INT", "parent", DRAINING, "burst"),
    KillCell("TERM", "parent", CHANGE, "fixed_schedule"),
    KillCell("HUP", "parent", LOAD, "fixed_schedule"),
    KillCell("STOP+CONT", "parent", REDUCING, "burst"),
    KillCell("KILL", "worker", LOAD, "fixed_schedule"),
    KillCell("STOP+CONT", "worker", FIRST, "burst"),
    KillCell("KILL", "reducer", REDUCING, "burst"),
    KillCell("TERM", "reducer", BUILDING, "request_rate"),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_signalled_run_says_what_it_was(cell: KillCell, tmp_path: Path) -> None:
    assert kill_table.run(cell, tmp_path, quiescent=True).problems == []


def test_the_next_start_removes_what_a_killed_run_left(tmp_path: Path) -> None:
    clean = kill_table.clean_names(tmp_path / "clean")
    folder = tmp_path / "killed"
    assert kill_table.run(KillCell("KILL", "parent", LOAD, "burst"), folder).problems == []
    assert kill_table.leftovers(folder, clean) == []


def test_the_short_form_has_every_signal_process_moment_and_mode() -> None:
    short = {value for cell in CELLS for value in (cell.signal, cell.process, cell.moment, cell.mode)}
    assert short == {*kill_table.SIGNALS, *kill_table.PROCESSES, *kill_table.MOMENTS, *kill_table.MODES}
    assert set(CELLS) <= set(kill_table.cells())
