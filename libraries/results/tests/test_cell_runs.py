"""A study's directory as its cells: repeats are one run, parameters beside the load a group."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from aiperf import AiperfError
from aiperf.results import CellRuns, open_cells
from aiperf.testing import sample_runs


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two repeats of two loads of two prompt lengths."""
    folder = tmp_path / "study"
    number = 0
    for trial in (1, 2):
        for isl in (100, 200):
            where = folder / "profile_runs" / f"trial_{trial:04d}"
            where.mkdir(parents=True, exist_ok=True)
            for load, run in enumerate(sample_runs(where, 2, everything=True)):
                made = run.directory.rename(where / f"concurrency_{2**load}_isl_{isl}")
                path = made / "profile_export_aiperf.json"
                summary = json.loads(path.read_text())
                summary["request_latency"]["avg"] = 100.0 * trial + load
                path.write_text(json.dumps(summary))
                cell = {"options": {"cell": {"concurrency": 2**load, "isl": isl}}, "seed": 1, "index": number % 4}
                (made / "run_manifest.json").write_text(json.dumps(cell))
                number += 1
    return folder


def test_repeats_are_one_run_with_the_mean_of_their_statistics(study: Path) -> None:
    cells = open_cells([study])
    assert [cell.label for cell in cells] == [f"concurrency_{c}_isl_{isl}" for isl in (100, 200) for c in (1, 2)]
    assert [cell.group for cell in cells] == ["isl 100", "isl 100", "isl 200", "isl 200"]
    assert [cell.number("request_latency") for cell in cells] == [150.0, 151.0, 150.0, 151.0]
    assert [len(cell.parts()) for cell in cells] == [2] * 4 and cells[0].number("nothing") is None


def test_requests_of_a_cell_are_those_of_all_repeats(study: Path) -> None:
    cell = open_cells([study])[0]
    assert isinstance(cell, CellRuns)
    cell.expect(["request_latency"])
    parts = [part.column("request_latency") for part in cell.parts()]
    np.testing.assert_array_equal(cell.column("request_latency"), np.concatenate(parts))
    table = cell.requests(["error_type", "request_latency"], failed=True)
    assert len(table) == 88 and sum(kind is not None for kind in table.texts("error_type")) == 8
    assert len(cell.arrivals()) == 90 and len(cell.slices()) == 4 and cell.telemetry()


def test_runs_and_studies_may_stand_beside_each_other(study: Path, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    sample_runs(tmp_path / "alone", 1)
    labels = [run.label for run in open_cells([tmp_path / "alone", study])]
    assert labels[:2] == ["run0", "study: concurrency_1_isl_100"] and len(labels) == 5


def test_a_study_without_a_good_run_is_refused(study: Path) -> None:
    for path in study.rglob("profile_export_aiperf.json"):
        path.unlink()
    with pytest.raises(AiperfError, match="has no cell with a run that succeeded"):
        open_cells([study])
