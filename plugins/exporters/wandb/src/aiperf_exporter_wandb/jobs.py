"""What a run is in Weights & Biases, as the process of the upload gets it."""

from __future__ import annotations

import math
from typing import Any

from aiperf import Result, Summary
from aiperf.sdk.redaction import redact
from aiperf.sdk.study import Study, StudyRun
from aiperf_uploads import ExportedFile, exported_files, study_files
from msgspec import Struct
from msgspec.structs import replace

from aiperf_exporter_wandb.options import WandbOptions

RUN, TABLE = "the run", "the table summary_metrics"
"""Items of an upload beside its files."""
COLUMNS = ("avg", "min", "max", "p99", "p90", "p50", "std")
"""Of the table, behind the metric's name."""
_DIGITS = 8


class WandbRun(Struct, frozen=True):
    """One run.

    rows: of the table: a metric's name, then a number or None for each of COLUMNS.  summary: statistics by ``<tag>`` (average)
    and ``<tag>.<stat>``.  artifact: its name.  files: absolute path, and name below the run's directory.
    group: the runs of one study have the same; None for a single run.  kind: its type of job there, None for a single run.
    label: of a run of a study, "" otherwise.
    """

    name: str
    config: dict[str, Any]
    tags: list[str]
    rows: list[list[str | float | None]]
    summary: dict[str, float]
    artifact: str
    group: str | None = None
    failed: bool = False
    files: tuple[tuple[str, str], ...] = ()
    artifact_type: str = "aiperf-run"
    kind: str | None = None
    label: str = ""

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [self.item(part) for part in (RUN, *([TABLE] if self.rows else ()), *(name for _, name in self.files))]

    def item(self, part: str) -> str:
        """A part of this run, in words."""
        return f"{self.label}: {part}" if self.label else part


class WandbJob(Struct, frozen=True):
    """An upload.

    directory: where offline runs are kept, for ``wandb sync``.  passing: for the client's passing files.
    """

    project: str
    entity: str | None
    directory: str
    passing: str
    runs: tuple[WandbRun, ...]

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [item for run in self.runs for item in run.items]


def run_of(summary: Summary, options: WandbOptions, files: list[ExportedFile]) -> WandbRun:
    digits = summary.run_id[:_DIGITS]
    return WandbRun(
        options.run_name or f"aiperf-{digits}",
        {**summary.config, "cli_command": redact(summary.command), "benchmark_id": summary.run_id},
        [f"aiperf-{summary.version}", f"benchmark-{digits}", *options.tags],
        rows(summary), numbers(summary), f"aiperf-{summary.run_id}", failed=not summary.complete,
        files=tuple((str(file.path), file.name) for file in files),
    )  # fmt: skip


def runs_of(study: Study, options: WandbOptions) -> tuple[WandbRun, ...]:
    """A run of a group for each run of the study, and one with what they have in common."""
    name = options.run_name or f"aiperf-{study.study_id[:_DIGITS]}"
    made = [_of_study(study, run, options, name) for run in study.runs]
    tags = [f"aiperf-{study.version}", f"study-{study.study_id[:_DIGITS]}", *options.tags]
    config = {**study.config, "cli_command": redact(study.command), "study_id": study.study_id, "planner": study.planner}
    counts = {"runs": float(len(study.runs)), "failed_runs": float(sum(run.summary is None for run in study.runs))}
    own = tuple((str(file.path), file.name) for file in study_files(study.directory))
    artifact = f"aiperf-{study.study_id}"
    made.append(WandbRun(
        name, config, tags, [], counts, artifact, name, failed=not study.complete, files=own, artifact_type="aiperf-study",
        kind="study", label="all runs",
    ))  # fmt: skip
    return tuple(made)


def _of_study(study: Study, run: StudyRun, options: WandbOptions, group: str) -> WandbRun:
    cell: dict[str, Any] = {"cell": dict(run.cell.parameters), "trial": run.trial, "study_id": study.study_id}
    name = f"{group}-{run.label.replace('/', '-')}"
    if run.summary is None:
        config = {**study.config, **cell, "failed": run.failed}
        tags = [f"aiperf-{study.version}", *options.tags]
        return WandbRun(name, config, tags, [], {}, "", group, failed=True, kind="run", label=run.label)
    made = run_of(run.summary, options, exported_files(run.directory))
    return replace(made, name=name, config={**made.config, **cell}, group=group, kind="run", label=run.label)


def rows(summary: Summary) -> list[list[str | float | None]]:
    """The console's rows, in its order, with two decimals."""
    shown = [result for result in summary.results.values() if result.order is not None]
    shown.sort(key=lambda each: (each.group, each.order, each.tag))
    return [[f"{result.title} ({result.unit})", *(_rounded(result, name) for name in COLUMNS)] for result in shown]


def _rounded(result: Result, name: str) -> float | None:
    value = result.stats.get(name)
    return None if value is None or not math.isfinite(value) else round(value, 2)


def numbers(summary: Summary) -> dict[str, float]:
    """All statistics in display units, for the receiver's own comparisons."""
    return {
        tag if stat == "avg" else f"{tag}.{stat}": value
        for tag, result in summary.results.items() for stat, value in result.stats.items() if math.isfinite(value)
    }  # fmt: skip


__all__ = ["COLUMNS", "RUN", "TABLE", "WandbJob", "WandbRun", "run_of", "runs_of"]
