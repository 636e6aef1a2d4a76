"""The runs of a page: this program's and the reference's, studies as their cells, killed runs as far as they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiperf import AiperfError, PlotRun
from aiperf_plotting.drawing import checked_summary
from aiperf_results import FinishedRun, is_study, left_out, metrics_of, open_cells
from msgspec import Struct

MOST_RUNS = 20
"""Runs side by side: more make no table that a person reads."""
Summarise = Callable[[Path], dict[str, Any]]
"""The summary JSON of a run that has a journal and none."""


class ReportedRun(Struct, frozen=True):
    """A run of the page.  remarks: sentences on its directory, for its verdict."""

    run: PlotRun
    remarks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.run.label

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.run.summary)

    def metrics(self) -> dict[str, dict[str, Any]]:
        """The metrics by tag, unit and statistics; of repeats the means, without bounds."""
        found = metrics_of(self.summary)
        if len(self.run.parts()) == 1:
            return found
        means = {tag: {name: self.run.number(tag, name) for name in entry if name != "unit"} for tag, entry in found.items()}
        return {
            tag: {"unit": found[tag]["unit"], **{name: value for name, value in each.items() if value is not None}}
            for tag, each in means.items()
        }

    def section(self, name: str) -> dict[str, Any]:
        """An object of the summary; empty where there is none."""
        found = self.run.summary.get(name)
        return found if isinstance(found, dict) else {}

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The objects of a list of the summary."""
        found = self.run.summary.get(name)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def reported_runs(paths: Sequence[Path], summarise: Summarise) -> tuple[list[ReportedRun], list[str]]:
    """The runs in these directories, in their order, and a sentence on each that can't be read.

    Raises:
        AiperfError: No run can be read, or they are too many.
    """
    found: dict[Path, ReportedRun] = {}
    failures: list[AiperfError] = []
    for path in paths:
        try:
            for each in _opened(path, summarise, failures):
                found.setdefault(_place(each.run), each)
        except AiperfError as error:
            failures.append(error)
    if not found and len(failures) == 1:
        raise failures[0]
    sentences = ["; ".join((error.message, *error.hints)) for error in failures]
    if not found:
        raise AiperfError("none of the directories can be reported", *sentences)
    if len(found) > MOST_RUNS:
        hint = "name fewer directories, or choose runs on a page: aiperf plot --dashboard"
        raise AiperfError(f"a page has {MOST_RUNS} runs side by side at most, and {len(found):,} are given", hint)
    return _told_apart(list(found.values())), sentences


def _opened(path: Path, summarise: Summarise, failures: list[AiperfError]) -> list[ReportedRun]:
    """The runs of a path; *failures* gets those of its runs that can't be read."""
    if path.is_dir() and _lacks_summary(path):
        killed = FinishedRun(path)
        killed.summary = summarise(path)
        checked_summary(killed)
        return [ReportedRun(killed, ("its directory has no results: these were made now, from its journal",))]
    try:
        runs = open_cells([path])
    except AiperfError as error:
        if path.is_dir() and _has_aggregate(path):
            hint = "name the directories of the runs, or of the study that holds them"
            raise AiperfError(f"{path} holds the aggregate of several runs, and no run", hint) from error
        raise
    failures += map(AiperfError, left_out([path]))
    readable = []
    for run in runs:
        try:
            checked_summary(run)
            readable.append(run)
        except AiperfError as error:
            if len(runs) == 1:
                raise
            failures.append(AiperfError(f"the run {run.label} is left out: {error.message}", *error.hints))
    return [ReportedRun(run, _remarks(run)) for run in readable]


def _lacks_summary(path: Path) -> bool:
    """Whether it is the directory of one run, with a journal and without results."""
    run = FinishedRun(path)
    return (path / "journal").exists() and not run.has("aiperf.json") and not is_study(path)


def _has_aggregate(path: Path) -> bool:
    return any(path.glob("*_aggregate.json")) or any(path.glob("aggregate/*.json"))


def _remarks(run: PlotRun) -> tuple[str, ...]:
    repeats = [part for part in run.parts() if isinstance(part, FinishedRun)]
    found = []
    if len(repeats) > 1:
        found.append(f"numbers of metrics are means of {len(repeats)} repeats; everything else is of the first")
    if any(part.starting for part in repeats):
        found.append("another run took its directory and has not begun: these are results of the run before")
    elif any(part.has_journal and part.marker is None for part in repeats):
        found.append("the run, or its last report, did not come to its end: files may be of different times")
    return tuple(found)


def _place(run: PlotRun) -> Path:
    part = run.parts()[0]
    return part.directory.resolve() if isinstance(part, FinishedRun) else Path(run.label)


def _told_apart(runs: list[ReportedRun]) -> list[ReportedRun]:
    """The runs with labels that differ: with as much of their paths as that takes."""
    for count in range(2, 12):
        labels = [each.label for each in runs]
        for each in runs:
            if labels.count(each.label) > 1:
                each.run.label = "/".join(_place(each.run).parts[-count:])
    return runs


__all__ = ["MOST_RUNS", "ReportedRun", "Summarise", "reported_runs"]
