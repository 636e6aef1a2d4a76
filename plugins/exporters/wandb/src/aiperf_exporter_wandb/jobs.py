"""What a run is in Weights & Biases, as the process of the upload gets it."""

from __future__ import annotations

import math
from typing import Any

from aiperf import Result, Summary
from aiperf.sdk.redaction import redact
from aiperf_uploads import ExportedFile
from msgspec import Struct

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
    group: the runs of one study have the same; None for a single run.
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

    @property
    def items(self) -> list[str]:
        """What is to arrive, in words."""
        return [RUN, TABLE, *(name for _, name in self.files)]


class WandbJob(Struct, frozen=True):
    """An upload.  directory: where an offline run is kept, for ``wandb sync``."""

    project: str
    entity: str | None
    directory: str
    run: WandbRun


def run_of(summary: Summary, options: WandbOptions, files: list[ExportedFile]) -> WandbRun:
    digits = summary.run_id[:_DIGITS]
    return WandbRun(
        options.run_name or f"aiperf-{digits}",
        {**summary.config, "cli_command": redact(summary.command), "benchmark_id": summary.run_id},
        [f"aiperf-{summary.version}", f"benchmark-{digits}", *options.tags],
        rows(summary), numbers(summary), f"aiperf-{summary.run_id}", failed=not summary.complete,
        files=tuple((str(file.path), file.name) for file in files),
    )  # fmt: skip


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


__all__ = ["COLUMNS", "RUN", "TABLE", "WandbJob", "WandbRun", "run_of"]
