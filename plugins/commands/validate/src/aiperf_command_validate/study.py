"""Whether the files of what several runs have in common agree with the runs' own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiperf_results import FinishedStudy, open_study
from aiperf_studies.cells import CellNumbers, numbers_of
from aiperf_studies.documents import AGGREGATE, SWEEP

from aiperf_command_validate.faults import Faults
from aiperf_command_validate.results import Findings

_FIELDS = ("mean", "std", "min", "max", "cv", "se", "ci_low", "ci_high", "t_critical", "unit")
_SHARE = 1e-9
"""By how much a number may differ from the one counted again, as a share of the largest of its row."""


def check_study(directory: Path) -> Findings:
    """Count the aggregates of a study again from its runs' summaries.

    Raises:
        AiperfError: The directory holds no study, or a summary can't be read.
    """
    opened, faults, files = open_study(directory), Faults(), dict[str, int | None]()
    study = opened.study
    cells = numbers_of(study)
    for cell in cells:
        path = study.aggregate_of(cell.cell) / f"{AGGREGATE}.json"
        found = _read(path, directory, files, faults)
        if found is not None:
            _compare(found.get("metrics"), cell, path.relative_to(directory).as_posix(), "", faults)
    path = study.aggregate_of_cells / f"{SWEEP}.json"
    sweep = _read(path, directory, files, faults)
    if sweep is not None:
        _check_sweep(sweep, cells, path.relative_to(directory).as_posix(), faults)
    wrong = faults.all()
    return Findings(str(directory), _made_by(opened), not wrong, files, wrong, list(_notes(opened)))


def _made_by(opened: FinishedStudy) -> str:
    return f"aiperf {opened.study.version}, {len(opened.runs)} runs"


def _notes(opened: FinishedStudy) -> Iterator[str]:
    for run in opened.runs:
        if run.failed:
            yield f"{run.directory.relative_to(opened.directory)}: {run.failed}"


def _check_sweep(document: Mapping[str, Any], cells: tuple[CellNumbers, ...], file: str, faults: Faults) -> None:
    listed = document.get("per_combination_metrics")
    combinations = listed if isinstance(listed, list) else []
    if len(combinations) != len(cells):
        faults.add(file, f"it has {len(combinations)} cells, and the directory has runs of {len(cells)}")
        return
    for combination, cell in zip(combinations, cells, strict=True):
        if combination.get("parameters") != cell.cell.parameters:
            faults.add(file, f"a cell has the values {combination.get('parameters')}, and its runs {cell.cell.parameters}")
            continue
        _compare(combination.get("metrics"), cell, file, f"{cell.cell.name}: ", faults)


def _compare(metrics: Any, cell: CellNumbers, file: str, where: str, faults: Faults) -> None:
    """Compare the rows that a file has of a cell with those of its runs."""
    if not isinstance(metrics, dict):
        faults.add(file, f"{where}it has no metrics")
        return
    rows = msgspec.to_builtins(cell.rows)
    for key in sorted(rows.keys() ^ metrics.keys()):
        faults.add(file, f"{where}{key} is {'in no run' if key in metrics else 'missing'}", kind="keys")
    for key in sorted(rows.keys() & metrics.keys()):
        counted, told = rows[key], metrics[key]
        scale = max(abs(counted["min"]), abs(counted["max"]), abs(counted["ci_low"]), abs(counted["ci_high"]))
        for name in _FIELDS:
            if name in told and not _equal(told[name], counted[name], scale):
                faults.add(file, f"{where}{key}.{name} is {told[name]}, and the runs give {counted[name]}", kind="numbers")


def _equal(told: Any, counted: Any, scale: float) -> bool:
    if isinstance(counted, float) and not math.isfinite(counted):
        return told is None
    if isinstance(counted, float) and isinstance(told, int | float):
        return abs(told - counted) <= _SHARE * max(scale, abs(counted))
    return bool(told == counted)


def _read(path: Path, directory: Path, files: dict[str, int | None], faults: Faults) -> dict[str, Any] | None:
    """The document; None where the study has none, or one that can't be read, which is a fault."""
    if not path.is_file():
        return None
    name = path.relative_to(directory).as_posix()
    files[name] = None
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        faults.add(name, f"it can't be read: {error}")
        return None
    if not isinstance(document, dict):
        faults.add(name, "it is no object")
        return None
    return document
