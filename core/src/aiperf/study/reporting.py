"""The report of a study: each run again from its journal, then what the runs have in common, without a server."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from aiperf.errors import AiperfError
from aiperf.registry.third_party import why
from aiperf.rundir import artifacts
from aiperf.rundir.reducing import report
from aiperf.sdk.exporter import Artifact
from aiperf.sdk.plan import Plan
from aiperf.sdk.study import StudyCell, StudyRun
from aiperf.sdk.summary import Summary
from aiperf.study import manifests
from aiperf.study.exporting import StudyExporters
from aiperf.study.manifests import RUN_FILE, STUDY_FILE, RunManifest, StudyManifest
from aiperf.study.outline import StudyOutline

_DEPTH = 3
"""Folders below the study's in which runs lie: ``profile_runs/trial_0001/concurrency_1``."""
_SET_ASIDE = re.compile(r"\.(half|failed|earlier)(-\d+)?$")


class StudyReport(Struct, frozen=True):
    """What was written, and a sentence on all that could not be."""

    written: Sequence[Artifact]
    failures: Sequence[str]


def report_study(
    directory: Path, change: Callable[[Plan], Plan] | None = None, output: Path | None = None, *, printed: bool = True,
    verbose: bool = False,
) -> StudyReport:  # fmt: skip
    """Make all files of a study again.  What sends them elsewhere is left out.

    *change* turns the plan of each run into that of its report.  *output*: a directory for the files, with the study's layout;
    None writes into the study's own.  *printed*: lines and tables of the study go to standard output.  *verbose*: the runs'
    reports go there, too.

    Raises:
        AiperfError: The directory holds no study of this program, or none of its runs can be reported.
    """
    try:
        manifest = manifests.read(directory / STUDY_FILE, StudyManifest)
    except manifests.Unreadable as error:
        raise AiperfError(f"{directory / STUDY_FILE} can't be read: {error}", *_one_by_one(directory)) from error
    if manifest is None or manifest.outline is None:
        missing = f"no {STUDY_FILE}" if manifest is None else f"a {STUDY_FILE} of an earlier version"
        raise AiperfError(f"{directory} has {missing}, which says how its runs belong together", *_one_by_one(directory))
    return _Reporting(directory, manifest, manifest.outline, output, change, printed=printed, verbose=verbose).made()


def _one_by_one(directory: Path) -> list[str]:
    return [f"aiperf report {found}" for found in list(_runs_below(directory, _DEPTH))[:10]]


class _Reporting:
    """Reports one run after the other, and then the study."""

    def __init__(
        self, directory: Path, manifest: StudyManifest, outline: StudyOutline, output: Path | None,
        change: Callable[[Plan], Plan] | None, *, printed: bool, verbose: bool,
    ) -> None:  # fmt: skip
        self._directory, self._manifest, self._outline, self._change = directory, manifest, outline, change
        self._to, self._printed, self._verbose = output or directory, printed, verbose
        self._plan: Plan | None = None
        self._failures: list[str] = []

    def made(self) -> StudyReport:
        measured = [run for run in map(self._run, _runs_below(self._directory, _DEPTH)) if run is not None]
        if self._plan is None:
            raise AiperfError(f"{self._directory} has no run with a manifest, and so nothing was measured", *self._failures)
        known = {(run.cell.index, run.trial) for run in measured}
        lost = [
            StudyRun(each.cell, each.trial, self._directory, each.seed, failed=each.failed)
            for each in self._outline.unsuccessful if (each.cell.index, each.trial) not in known
        ]  # fmt: skip
        runs = sorted((*measured, *lost), key=lambda run: (run.begin_ns, run.cell.index, run.trial))
        about = self._manifest
        study = self._outline.study(about.study_id, about.version, about.command, self._to, runs)
        options = self._plan.plugins.options
        chosen = [(ref, options.get(ref.key)) for ref in self._outline.exporters]
        exporters = StudyExporters(chosen, self._plan, self._to, lambda told: None, printed=self._printed, sends=False)
        for count in range(1, len(runs) + 1):
            exporters.run_ended(replace(study, runs=tuple(runs[:count]), complete=False, reason="", design=None))
        written = exporters.export(study) if any(run.summary is not None for run in runs) else []
        if self._printed:
            exporters.print_tables(study)
        return StudyReport(written, [*self._failures, *exporters.failures])

    def _run(self, directory: Path) -> StudyRun | None:
        """The run in *directory*, reported; None where it was not measured."""
        try:
            manifest = manifests.read(directory / RUN_FILE, RunManifest)
        except manifests.Unreadable as error:
            self._failures.append(f"{directory}: its manifest can't be read: {error}")
            return None
        if manifest is None or manifest.index is None:
            self._failures.append(f"{directory} was not measured to its end, and is left out")
            return None
        parameters = manifest.options.get("cell", {})
        cell = StudyCell(manifest.index, parameters, manifest.cell, manifest.cell_label)
        to = self._to / directory.relative_to(self._directory)
        run = StudyRun(cell, manifest.trial, to, manifest.seed, None, manifest.failed, manifest.carried_over)
        try:
            return self._reported(directory, run)
        except (AiperfError, OSError) as error:
            self._failures.append(f"{run.label} can't be reported: {why(error)}")
            return replace(run, failed=run.failed or why(error))

    def _reported(self, directory: Path, run: StudyRun) -> StudyRun:
        summary, plan, clock = report(directory, self._change)
        self._plan = self._plan or plan
        target = replace(artifacts.target_for(plan, clock), directory=run.directory)
        if self._verbose:
            target = replace(target, verbose=True)
        run.directory.mkdir(parents=True, exist_ok=True)
        shown = contextlib.nullcontext() if self._verbose else contextlib.redirect_stdout(io.StringIO())
        with shown:
            written, failures = artifacts.export(summary, plan, Path(plan.output.journal), target)
        failures = [*failures, *_more_of(summary)]
        artifacts.mark_ready(target, written, cancelled=summary.cancelled, partial=bool(failures))
        self._failures += [f"{run.label}: {sentence}" for sentence in failures]
        phases = [phase for phase in summary.phases if phase.end_ns > phase.start_ns > 0]
        begin_ns, end_ns = min((each.start_ns for each in phases), default=0), max((each.end_ns for each in phases), default=0)
        summary = replace(summary, directory=str(run.directory.absolute()))
        return replace(run, summary=None if run.failed else summary, begin_ns=begin_ns, end_ns=end_ns)


def _more_of(summary: Summary) -> list[str]:
    """Sentences on metrics that failed, and on what the journal has lost."""
    return [sentence for key in ("failures", "lost") for sentence in summary.extra.get(key, ())]


def _runs_below(path: Path, depth: int) -> Iterator[Path]:
    """Directories with a journal; those that were set aside are left out."""
    for below in sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()):
        if _SET_ASIDE.search(below.name):
            continue
        if (below / "journal").is_dir():
            yield below
        elif depth > 1:
            yield from _runs_below(below, depth - 1)
