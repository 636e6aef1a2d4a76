"""What a run is in MLflow: parameters, metrics, tags and files, as the process of the upload gets them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from aiperf import Summary
from aiperf.sdk.redaction import redact
from aiperf.sdk.study import Study, StudyRun
from aiperf_uploads import ExportedFile
from msgspec import Struct
from msgspec.structs import replace

from aiperf_exporter_mlflow.options import MlflowOptions, tags_of

METRICS, PARAMETERS = "the metrics", "the parameters"
RUN = "the run"
"""Items of an upload beside its files."""
PICTURES = "plots"
"""The folder of pictures in MLflow."""
_NAME_DIGITS = 8


class MlflowRun(Struct, frozen=True):
    """One run.

    metrics: by name.  files: absolute path, name below the run's directory, and folder in MLflow.
    label: of a run of a study, "" of the study and of a single run.  known: the MLflow run that it is already; None where it is
    to be made.
    """

    name: str
    metrics: dict[str, float]
    parameters: dict[str, str]
    tags: dict[str, str]
    start_ms: int
    end_ms: int
    failed: bool = False
    files: tuple[tuple[str, str, str], ...] = ()
    label: str = ""
    known: str | None = None

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [self.item(part) for part in (RUN, METRICS, PARAMETERS, *(name for _, name, _ in self.files))]

    def item(self, part: str) -> str:
        """A part of this run, in words."""
        return f"{self.label}: {part}" if self.label else part


class MlflowJob(Struct, frozen=True):
    """An upload.  parent_run_id: the MLflow run that contains it.  children: the runs of a study, nested in *run*."""

    tracking_uri: str
    experiment: str
    run: MlflowRun
    parent_run_id: str | None = None
    children: tuple[MlflowRun, ...] = ()

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [*self.run.items, *(item for child in self.children for item in child.items)]


class MlflowPictures(Struct, frozen=True):
    """Pictures for a run that is there.  files: absolute path and name."""

    tracking_uri: str
    run_id: str
    files: tuple[tuple[str, str], ...]


def run_of(summary: Summary, options: MlflowOptions, files: list[ExportedFile]) -> MlflowRun:
    """A run, by itself or of a study."""
    return MlflowRun(
        options.run_name or f"aiperf-{summary.run_id[:_NAME_DIGITS]}", metrics(summary), parameters(summary),
        {"aiperf.version": summary.version, "aiperf.was_cancelled": str(summary.cancelled).lower(),
         "benchmark_id": summary.run_id, **tags_of(options.tags)},
        summary.start_ns // 10**6, summary.end_ns // 10**6, failed=not summary.complete, files=_files(files),
    )  # fmt: skip


def parent_of(study: Study, options: MlflowOptions, files: list[ExportedFile], known: str | None) -> MlflowRun:
    """The study itself: what its runs have in common, and the files of all."""
    failed = sum(run.summary is None for run in study.runs)
    counts = {"aiperf.cells": len(study.cells), "aiperf.runs": len(study.runs), "aiperf.failed_runs": failed}
    values: dict[str, Any] = {
        "study.planner": study.planner, "study.trials": study.trials, "output.artifact_directory": str(study.directory),
        "aiperf.cli_command": redact(study.command),
        **{f"study.{each.key}": ",".join(map(str, each.values)) for each in study.dimensions if each.values},
    }  # fmt: skip
    return MlflowRun(
        options.run_name or f"aiperf-{study.study_id[:_NAME_DIGITS]}", {name: float(count) for name, count in counts.items()},
        {name: str(value) for name, value in values.items() if value not in (None, "")},
        {"aiperf.version": study.version, "aiperf.study_id": study.study_id, **tags_of(options.tags)},
        min((run.begin_ns for run in study.runs if run.begin_ns), default=0) // 10**6,
        max((run.end_ns for run in study.runs), default=0) // 10**6, failed=not study.complete or failed == len(study.runs),
        files=_files(files), known=known,
    )  # fmt: skip


def child_of(study: Study, run: StudyRun, options: MlflowOptions, files: list[ExportedFile]) -> MlflowRun:
    """A run of a study, also one that failed."""
    cell = {f"cell.{key}": str(value) for key, value in run.cell.parameters.items()}
    tags = {"aiperf.study_id": study.study_id, "aiperf.trial": str(run.trial)}
    if run.summary is None:
        why = {"aiperf.version": study.version, "aiperf.failed": run.failed, **tags, **tags_of(options.tags)}
        times = run.begin_ns // 10**6, run.end_ns // 10**6
        return MlflowRun(run.label, {}, cell, why, *times, failed=True, label=run.label)
    made = run_of(run.summary, options, files)
    return replace(made, name=run.label, label=run.label, parameters={**made.parameters, **cell}, tags={**made.tags, **tags})


def _files(files: list[ExportedFile]) -> tuple[tuple[str, str, str], ...]:
    return tuple((str(file.path), file.name, _folder(file)) for file in files)


def _folder(file: ExportedFile) -> str:
    """``exports``, or ``plots`` with the directories between."""
    within = Path(file.name).parent.as_posix().removeprefix("plots").strip("/.")
    return f"{file.folder}/{within}" if within else file.folder


def metrics(summary: Summary) -> dict[str, float]:
    """``<tag>`` is the average or the only value, ``<tag>.<stat>`` any other statistic; in display units."""
    found: dict[str, float] = {}
    for tag, result in summary.results.items():
        for stat, value in result.stats.items():
            if math.isfinite(value):
                found[tag if stat == "avg" else f"{tag}.{stat}"] = value
        found |= {f"{tag}.{name}": count for name, count in result.counts.items()}
    found["aiperf.completed_requests"] = summary.valid + summary.failed
    found["aiperf.total_expected_requests"] = summary.measurement.arrivals.planned
    return found


def parameters(summary: Summary) -> dict[str, str]:
    """The parameters that the run has a value of."""
    config = summary.config
    endpoint = config.get("endpoint", {})
    phase: dict[str, Any] = next((each for each in config.get("phases", ()) if each.get("kind") == "profiling"), {})
    values: dict[str, Any] = {
        "endpoint.type": endpoint.get("type"),
        "endpoint.models": ",".join(item["name"] for item in config.get("models", {}).get("items", ())),
        "endpoint.urls": redact(",".join(endpoint.get("urls", ()))),
        "output.artifact_directory": summary.directory,
        "timing.mode": phase.get("type"),
        "loadgen.concurrency": phase.get("concurrency"),
        "loadgen.request_rate": phase.get("rate"),
        "loadgen.request_count": phase.get("requests"),
        "loadgen.benchmark_duration": phase.get("duration"),
        "aiperf.cli_command": redact(summary.command),
    }
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


__all__ = [
    "METRICS", "PARAMETERS", "PICTURES", "RUN", "MlflowJob", "MlflowPictures", "MlflowRun", "child_of", "parent_of", "run_of",
]  # fmt: skip
