"""A study's directory, read: its runs, what those of each cell say together, and a table of the cells."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.study import Dimension, Objective, Setting, SlaFilter, Study, StudyCell, StudyRun
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, Result, Summary

from aiperf_results.finished_run import FinishedRun, metrics_of

if TYPE_CHECKING:
    from aiperf_studies.cells import CellNumbers

STUDY_FILE, RUN_FILE, REFERENCE_RUN_FILE = "study_manifest.json", "run_manifest.json", "run_config.json"
"""Manifests of a study and of its runs, and what the reference writes in the place of the latter."""
_SWEEP_FILE = "sweep_aggregate/profile_export_aiperf_sweep.json"
_SWEEP_FILES = (_SWEEP_FILE, f"aggregate/{_SWEEP_FILE}")
_AGGREGATE_FILE = "aggregate/profile_export_aiperf_aggregate.json"
_TRIAL = re.compile(r"(?:run|trial)_(\d{4,})")
_DEPTH = 3
"""Folders below the study's in which runs lie: ``profile_runs/trial_0001/concurrency_1``."""
_NO_CELLS = frozenset(("aggregate", "sweep_aggregate", "logs", "journal"))
_NO_PANDAS = "a data frame needs pandas, which is not installed"


class FinishedTrial:
    """One run of a study.

    cell: its combination of values.  trial: from 1.  directory: of its files.  run: its results; None where it has none.
    failed: why it has none, or why they don't count; "" where they do.
    """

    def __init__(self, cell: StudyCell, trial: int, directory: Path, seed: int, failed: str) -> None:
        self.cell, self.trial, self.directory, self.seed = cell, trial, directory, seed
        run = FinishedRun(directory, cell.name or f"run_{trial:04d}")
        self.run = run if run.has("aiperf.json") else None
        self.failed = failed or ("" if self.run is not None else "it has no summary: it was broken off, or failed")

    @property
    def parameters(self) -> dict[str, Setting]:
        return self.cell.parameters

    @cached_property
    def summary(self) -> dict[str, Any]:
        """``profile_export_aiperf.json``, whole; empty where there is none.

        Raises:
            AiperfError: The file can't be read.
        """
        return {} if self.run is None else self.run.summary

    @property
    def verdict(self) -> str:
        """``trustworthy``, ``suspect``, ``partial``, ``none``, or ``failed``; "" of the reference's runs, which have none."""
        if self.failed:
            return "failed"
        return str(self.summary.get("measurement", {}).get("verdict", ""))

    def study_run(self) -> StudyRun:
        """The run as exporters of studies see it, with as much of its summary as the file has."""
        summary = None if self.failed else _summary_of(self.summary, self.directory)
        return StudyRun(self.cell, self.trial, self.directory, self.seed, summary, self.failed)


class FinishedCell:
    """A cell with runs.  rows: what its successful runs say together, by ``<tag>_<stat>``."""

    def __init__(self, numbers: CellNumbers, runs: Sequence[FinishedTrial]) -> None:
        self.cell, self.runs, self.rows = numbers.cell, tuple(runs), numbers.rows

    @property
    def parameters(self) -> dict[str, Setting]:
        return self.cell.parameters

    @property
    def name(self) -> str:
        return self.cell.name

    @property
    def directory(self) -> Path:
        """The directory of its first run."""
        return self.runs[0].directory

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of its first successful run; empty where none succeeded."""
        return next((run.summary for run in self.runs if not run.failed), {})

    @property
    def verdict(self) -> str:
        """The worst one of its runs."""
        order = ("failed", "suspect", "partial", "none", "trustworthy", "")
        return min((run.verdict for run in self.runs), key=lambda each: order.index(each) if each in order else 0)

    def number(self, tag: str, stat: str = "avg") -> float | None:
        """The mean of a statistic over the successful runs, in its display unit; None where no run has it."""
        row = self.rows.get(f"{tag}_{stat}")
        return None if row is None else row.mean


class StudyTable:
    """A row for each cell: its name, values, number of successful runs, verdict, and means by ``<tag>_<stat>``."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @property
    def columns(self) -> list[str]:
        """All keys of the rows, in the order in which they first appear."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def csv(self) -> str:
        """The table as CSV, with a header; what a row lacks is empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``.

        Raises:
            AiperfError: pandas is not installed.
        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError as error:
            raise AiperfError(_NO_PANDAS, "pip install pandas, or use the rows of the table, or its csv()") from error
        return pandas.DataFrame(self.rows, columns=self.columns)


class FinishedStudy:
    """The results in *directory*: finished, broken off, or under way; this program's or the reference's.

    runs: by cell and trial.  manifest: ``study_manifest.json``, empty where there is none.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest = _document(directory / STUDY_FILE)
        self._sweep: dict[str, Any] = next((found for name in _SWEEP_FILES if (found := _document(directory / name))), {})
        self._aggregate = _document(directory / _AGGREGATE_FILE)
        self.runs = tuple(_runs(directory, self._sweep))

    @cached_property
    def study(self) -> Study:
        """The study as exporters see it, with as much of each summary as the files have."""
        runs = tuple(trial.study_run() for trial in self.runs)
        outline: dict[str, Any] = self.manifest.get("outline") or {}
        about = self._sweep.get("metadata") or self._aggregate.get("metadata") or {}
        keys = list(dict.fromkeys(key for run in runs for key in run.cell.parameters))
        named = any(run.cell.name for run in runs)
        trials = max((run.trial for run in runs), default=1)
        version = str(self.manifest.get("version", "") or next((run.summary.version for run in runs if run.summary), ""))
        return Study(
            str(self.manifest.get("study_id", "")), version, self.directory, runs,
            planner=str(about.get("sweep_type", "")),
            dimensions=tuple(Dimension(key, key) for key in keys) or ((Dimension("", ""),) if named else ()),
            trials=max(trials, int(about.get("num_trials_per_value", 1))),
            order=_order(self.directory, self.runs),
            confidence_level=float(about.get("confidence_level", 0.95)),
            cooldown_s=float(about.get("cooldown_seconds", 0.0)),
            command=str(self.manifest.get("command", "")),
            objectives=tuple(Objective(**each) for each in outline.get("objectives", ())),
            sla_filters=tuple(SlaFilter(**each) for each in outline.get("sla_filters", ())),
        )  # fmt: skip

    @cached_property
    def cells(self) -> tuple[FinishedCell, ...]:
        """The cells with runs, by index.

        Raises:
            AiperfError: A summary can't be read.
        """
        from aiperf_studies.cells import numbers_of

        runs: dict[int, list[FinishedTrial]] = {}
        for run in self.runs:
            runs.setdefault(run.cell.index, []).append(run)
        return tuple(FinishedCell(numbers, runs[numbers.cell.index]) for numbers in numbers_of(self.study))

    def table(self, metrics: Sequence[str] = ()) -> StudyTable:
        """The cells as a table.  *metrics*: the columns behind the values, such as ``time_to_first_token_p99``; () are all.

        Raises:
            AiperfError: A summary can't be read.
        """
        rows = []
        for cell in self.cells:
            about = {"cell": cell.name, **cell.parameters, "runs": sum(not run.failed for run in cell.runs)}
            means = {key: row.mean for key, row in cell.rows.items() if not metrics or key in metrics}
            ordered = {key: means.get(key) for key in metrics} if metrics else means
            rows.append({**about, "verdict": cell.verdict, **ordered})
        return StudyTable(rows)


def open_study(directory: Path | str) -> FinishedStudy:
    """The study in *directory*: several runs of one command, finished or not, this program's or the reference's.

    Raises:
        AiperfError: The directory is not there, or holds no runs of a study.
    """
    path = Path(directory)
    if not path.is_dir():
        raise AiperfError(f"{path} is {'a file' if path.exists() else 'not there'}; a study is a directory", _GIVE)
    study = FinishedStudy(path)
    if not study.runs:
        one = " (it has one run: aiperf.results.open_run reads it)" if FinishedRun(path).has("aiperf.json") else ""
        raise AiperfError(f"{path} holds no runs of a study{one}", _GIVE)
    return study


def is_study(directory: Path) -> bool:
    """Whether the directory has runs of a study below it, and is none itself; several runs side by side are no study."""
    if (directory / STUDY_FILE).is_file():
        return True
    if any((directory / name).exists() for name in ("journal", RUN_FILE)) or FinishedRun(directory).has("aiperf.json"):
        return False
    found = _found(directory, _DEPTH)
    return any((run / name).exists() for run in found for name in (RUN_FILE, REFERENCE_RUN_FILE))


_GIVE = "give the artifact directory of a command with several runs"


def _runs(base: Path, sweep: Mapping[str, Any]) -> list[FinishedTrial]:
    """The runs by cell and trial."""
    found = []
    for directory in _found(base, _DEPTH):
        parts = directory.relative_to(base).parts
        trial = next((int(match[1]) for part in parts if (match := _TRIAL.fullmatch(part))), 1)
        name = next((part for part in parts if part != "profile_runs" and not _TRIAL.fullmatch(part)), "")
        found.append((directory, name, trial))
    known = {each.get("cell", ""): each for each in sweep.get("per_combination_metrics", ()) if isinstance(each, dict)}
    cells: dict[str, StudyCell] = {}
    made = []
    told = [(directory, name, trial, _told(directory)) for directory, name, trial in found]
    order = {name: _place(about, known.get(name, {})) for _, name, _, about in told}
    names = sorted(order, key=lambda name: (order[name], _counting(name)))
    for directory, name, trial, about in told:
        if name not in cells:
            parameters = about.parameters or dict(known.get(name, {}).get("parameters", {}))
            cells[name] = StudyCell(names.index(name), parameters, name, about.label)
        made.append(FinishedTrial(cells[name], trial, directory, about.seed, about.failed))
    return sorted(made, key=lambda run: (run.cell.index, run.trial))


class _Told:
    """What a run's manifest, or the reference's configuration of it, says.  index: of its cell, None where it isn't said."""

    def __init__(
        self, parameters: dict[str, Setting], seed: int, label: str = "", index: int | None = None, failed: str = ""
    ) -> None:
        self.parameters, self.seed, self.label, self.index, self.failed = parameters, seed, label, index, failed


def _told(directory: Path) -> _Told:
    manifest = _document(directory / RUN_FILE)
    if manifest:
        options = manifest.get("options", {})
        cell = options.get("cell", {})
        index = manifest.get("index")
        return _Told(
            cell if isinstance(cell, dict) else {}, int(manifest.get("seed", 0)), str(manifest.get("cell_label", "")),
            index if isinstance(index, int) else None, str(manifest.get("failed", "")),
        )  # fmt: skip
    config = _document(directory / REFERENCE_RUN_FILE)
    variation = config.get("variation") or {}
    values = {str(path).rpartition(".")[2]: value for path, value in (variation.get("values") or {}).items()}
    return _Told(values, int(config.get("random_seed") or 0), str(variation.get("label", "")), variation.get("index"))


def _place(about: _Told, known: Mapping[str, Any]) -> float:
    """The cell's place among others: its index where that is known."""
    index = about.index if about.index is not None else known.get("index")
    return float(index) if isinstance(index, int) else math.inf


def _counting(name: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _found(path: Path, depth: int) -> Iterator[Path]:
    """The directories of runs below; those that were set aside, whose names have an ending, are left out."""
    for below in sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()):
        if below.name in _NO_CELLS or re.search(r"\.(half|failed|earlier)(-\d+)?$", below.name):
            continue
        if any((below / name).exists() for name in (RUN_FILE, REFERENCE_RUN_FILE, "journal", "profile_export_aiperf.json")):
            yield below
        elif depth > 1:
            yield from _found(below, depth - 1)


def _order(base: Path, runs: Sequence[FinishedTrial]) -> str:
    """``independent`` where trials lie below their cells."""
    for run in runs:
        parts = run.directory.relative_to(base).parts
        if run.cell.name and "profile_runs" in parts[1:]:
            return "independent"
    return "repeated"


def _summary_of(document: Mapping[str, Any], directory: Path) -> Summary:
    """A summary with as much as the file has, for those who read several runs."""
    results = {
        tag: Result(tag, tag, str(entry["unit"]), {
            name: float(value) for name, value in entry.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        })
        for tag, entry in metrics_of(dict(document)).items()
    }  # fmt: skip
    measured, info = document.get("measurement", {}), document.get("run_info", {})
    measurement = Measurement(
        str(measured.get("clock", "")), bool(measured.get("loopback", False)), Arrivals(), str(measured.get("verdict", "none")),
        tuple(map(str, measured.get("reasons", ()))),
    )  # fmt: skip
    version = str(document.get("aiperf_version", ""))
    return Summary(
        run_id=str(document.get("benchmark_id", "")), version=version, results=results, errors=(), phases=(),
        measurement=measurement, delivered=DeliveredLoad(None, None, 0), plugins=(), start_ns=0, end_ns=0, title="",
        command=str(info.get("cli_command", "")), config=dict(document.get("input_config", {})), seed=info.get("random_seed"),
        directory=str(directory),
    )  # fmt: skip


def _document(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is none, or the file can't be read."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
