"""What a person sees of a run in a study: its name, its values, and a line when it has ended."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.study import StudyCell, StudyRun

_GAP = "  "


def name_of(run: StudyRun, trials: int) -> str:
    """What a person calls the run: its cell alone where each cell has one run."""
    return run.cell.name if run.cell.name and trials == 1 else run.label


def line_of(run: StudyRun, trials: int, numbers: Sequence[str]) -> str:
    """One line on a run that has ended.  *numbers*: what exporters say of it."""
    if run.summary is None:
        return f"{name_of(run, trials)}  failed: {run.failed}"
    summary, parts = run.summary, [name_of(run, trials), *numbers]
    if summary.failed:
        parts.append(f"{summary.failed:,} of {summary.valid + summary.failed:,} failed")
    if summary.measurement.verdict != "trustworthy":
        parts.append(summary.measurement.verdict)
    if run.resumed:
        parts.append("measured before")
    return _GAP.join(parts)


def cell_line(cell: StudyCell) -> str:
    """The values of a cell: ``concurrency 4, rate 10``."""
    return cell.label or ", ".join(f"{key} {_short(value)}" for key, value in cell.parameters.items())


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."
