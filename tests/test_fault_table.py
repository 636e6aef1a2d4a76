"""The fault table in short: all faults in one run, in every mode and on both transports; ``make nightly`` has each alone."""

from __future__ import annotations

from pathlib import Path

import away_table
import fault_table
import kill_table
import nightly
import pytest
from fault_table import MIXED, FaultCell

CELLS = [FaultCell(MIXED, mode, transport) for mode in fault_table.MODES for transport in fault_table.TRANSPORTS]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.mode}-{cell.transport}")
def test_arrivals_agree_with_the_log_of_a_faulty_server(cell: FaultCell, tmp_path: Path) -> None:
    assert fault_table.run(cell, tmp_path, validate=False) == []


def test_the_table_has_every_fault_in_every_mode() -> None:
    names = [cell.name for cell in fault_table.cells()]
    assert len(set(names)) == len(names) == len(fault_table.FAULTS) * 4 * 2


def test_the_page_counts_every_cell_of_all_tables() -> None:
    page = nightly.PAGE.read_text()
    faults, kills = page.partition("## A busy machine")[0].split("## Signals to the run")
    away = page.partition("## A server that is away")[2].partition("## Runs that fail")[0]
    for text, names in (
        (away, [cell.name for cell in away_table.cells()]),
        (faults, [cell.name for cell in fault_table.cells()]),
        (kills, [cell.name for cell in kill_table.cells()]),
    ):
        rows = "".join(line for line in text.splitlines() if line.startswith("| "))
        assert rows.count("✔") + rows.count("✘") == len(names), "each has run"
        assert f"{rows.count('✔')} of {len(names)} cells pass, {rows.count('✘')} fail" in text
        reasons = "".join(line for line in text.splitlines() if line.startswith("- ") and ": `" in line)
        assert sum(f"`{name}`" in reasons for name in names) == rows.count("✘"), "each has its reason"
