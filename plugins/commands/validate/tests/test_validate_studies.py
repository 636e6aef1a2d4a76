"""Aggregates of several runs, counted again from these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_validate.study import check_study
from aiperf_results import open_study
from aiperf_studies.cells import numbers_of
from aiperf_studies.documents import aggregate_document, json_bytes, sweep_document


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep over two values with two trials, and what its runs have in common."""
    for trial in (1, 2):
        for value in (1, 2):
            folder = tmp_path / "profile_runs" / f"trial_000{trial}" / f"c_{value}"
            folder.mkdir(parents=True)
            summary = {"request_latency": {"unit": "ms", "avg": 1.5 * value + trial, "p99": 9.0 * trial}}
            (folder / "profile_export_aiperf.json").write_text(json.dumps(summary))
            (folder / "run_manifest.json").write_text(json.dumps({"options": {"cell": {"c": value}}, "seed": 42}))
    study = open_study(tmp_path).study
    cells = numbers_of(study)
    name = "profile_export_aiperf_aggregate.json"
    written = {study.aggregate_of(cell.cell) / name: aggregate_document(study, cell) for cell in cells}
    written[study.aggregate_of_cells / "profile_export_aiperf_sweep.json"] = sweep_document(study, cells)
    for path, document in written.items():
        path.parent.mkdir(parents=True)
        path.write_bytes(json_bytes(document))
    return tmp_path


def edited(path: Path, *keys: Any, value: Any) -> None:
    document = json.loads(path.read_bytes())
    part = document
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(json.dumps(document))


def test_aggregates_of_the_runs_are_right(sweep: Path) -> None:
    found = check_study(sweep)
    assert found.faults == [] and found.valid
    assert sorted(found.files) == [
        "aggregate/c_1/profile_export_aiperf_aggregate.json", "aggregate/c_2/profile_export_aiperf_aggregate.json",
        "aggregate/sweep_aggregate/profile_export_aiperf_sweep.json",
    ]  # fmt: skip


def test_another_number_is_a_fault(sweep: Path) -> None:
    edited(sweep / "aggregate/c_1/profile_export_aiperf_aggregate.json", "metrics", "request_latency_avg", "mean", value=3.01)
    (fault,) = check_study(sweep).faults
    assert str(fault) == (
        "aggregate/c_1/profile_export_aiperf_aggregate.json: request_latency_avg.mean is 3.01, and the runs give 3.0"
    )


def test_other_values_of_a_cell_are_a_fault(sweep: Path) -> None:
    path = sweep / "aggregate/sweep_aggregate/profile_export_aiperf_sweep.json"
    edited(path, "per_combination_metrics", 1, "parameters", "c", value=3)
    assert "and its runs {'c': 2}" in check_study(sweep).faults[0].message


def test_a_run_that_is_gone_is_a_fault(sweep: Path) -> None:
    (sweep / "profile_runs/trial_0002/c_2/profile_export_aiperf.json").unlink()
    found = check_study(sweep)
    assert found.notes and {fault.file.split("/")[1] for fault in found.faults} == {"c_2", "sweep_aggregate"}


def test_a_file_that_is_cut_off_is_a_fault(sweep: Path) -> None:
    path = sweep / "aggregate/c_2/profile_export_aiperf_aggregate.json"
    path.write_bytes(path.read_bytes()[:99])
    (fault,) = check_study(sweep).faults
    assert "can't be read" in fault.message
