"""Results to files: every process loads exporters here, and the parent joins and runs them.

Reducers append the rows of a :class:`~aiperf.sdk.exporter.BatchExporter` to ``<journal>/part-<exporter>-<reducer>``; the
parent joins the parts.  An exporter that fails is reported by name and version, and the others still run.
An exporter whose import fails is one warning and no failure of the run, because nobody asked for it by name.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aiperf import environment
from aiperf.errors import ConfigError, PluginError
from aiperf.registry.third_party import isolated, left_out, load, said_already
from aiperf.sdk.exporter import LEVELS, Artifact, BatchExporter, DatasetExporter, Exporter, SummaryExporter, Target, atomic
from aiperf.sdk.model import names
from aiperf.sdk.plan import RunClock

if TYPE_CHECKING:
    from aiperf.sdk.descriptor import PluginRef
    from aiperf.sdk.plan import Plan
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)

READY_FILE = ".aiperf_results_ready.json"
"""Written last, so that a script can wait for it."""

_LARGE_BYTES, _JOINS = 16 << 20, 2
"""Parts of less in all are joined one exporter after the other; the threads that join larger ones."""

E = TypeVar("E", bound=Exporter)


def target_for(plan: Plan, clock: RunClock) -> Target:
    """The destination and extent of the run's exports."""
    return Target(
        directory=Path(plan.output.artifacts), journal=Path(plan.output.journal), files=plan.output.files,
        prefix=plan.output.export_prefix, level=plan.output.export_level, width=environment.console_export_width(),
        verbose=plan.run.verbose, config=plan.run.config, reducers=plan.run.reducers, started_wall_ns=clock.started_wall_ns,
        phases=tuple(phase.name for phase in plan.load.phases), kinds=tuple(phase.kind for phase in plan.load.phases),
        percentiles=plan.output.percentiles, columns=plan.output.columns,
    )  # fmt: skip


def load_exporters(plan: Plan) -> None:
    """Import the run's exporters ahead of their use, which tells what is wrong with them, and what their files take."""
    for ref in plan.plugins.exporters:
        with contextlib.suppress(PluginError):
            load(ref)
    target = target_for(plan, RunClock(0, 0))  # no import depends on the time
    for ref, exporter in exporters(plan, target, BatchExporter, lambda told: None):
        with isolated(ref, lambda told: None):
            exporter.prepare_join()


def exporters(
    plan: Plan, target: Target, kind: type[E], report: Callable[[str], object] = log.warning,
    absent: list[tuple[PluginRef, PluginError]] | None = None,
) -> list[tuple[PluginRef, E]]:  # fmt: skip
    """The run's exporters of one kind, for example of per-request files (:class:`~aiperf.sdk.exporter.BatchExporter`).

    One that can't be made is left out, and *report* is called with a sentence on it.  Import errors are added to *absent*.
    """
    made: list[tuple[PluginRef, E]] = []
    for ref in plan.plugins.exporters:
        try:
            cls = load(ref)
        except PluginError as error:
            if absent is not None:
                absent.append((ref, error))
            continue
        with isolated(ref, report, "can't be used"):
            if issubclass(cls, kind) and LEVELS.index(cls.level) <= LEVELS.index(target.level):
                exporter = cls(target, plan.plugins.options_of(ref))
                if exporter.wanted():
                    made.append((ref, exporter))
    return made


def planned_files(plan: Plan) -> list[Path]:
    """The files of the run's exporters, as far as they are known before it."""
    target = target_for(plan, RunClock(0, 0))  # no name depends on the time
    every = exporters(plan, target, Exporter)
    return [exporter.target.file(kind) for _, exporter in every for kind in exporter.planned()]


def part_path(journal: Path, exporter: str, reducer: int) -> Path:
    """Where reducer *reducer* writes the rows of the batch exporter of this name."""
    return journal / f"part-{exporter}-{reducer}"


def parts(journal: Path, exporter: str) -> list[Path]:
    """The parts that are not empty, in the order of their reducers."""
    paths = {path.name.rpartition("-")[2]: path for path in journal.glob(f"part-{exporter}-*") if path.stat().st_size}
    return [paths[number] for number in sorted(filter(str.isdigit, paths), key=int)]


def export(summary: Summary, plan: Plan, journal: Path, target: Target) -> tuple[list[Artifact], list[str]]:
    """Write everything: what was written, and a sentence on each exporter that failed."""
    exporting = Export(summary, plan, journal, target)
    exporting.begin()
    exporting.complete()
    return exporting.written, exporting.failures


class RowFiles:
    """The per-request files of a run, which are made of the reducers' parts, large ones side by side.

    failures: a sentence on each exporter that failed.
    """

    def __init__(self, plan: Plan, journal: Path, target: Target) -> None:
        self._plan, self._journal, self._target = plan, journal, target
        self._made: list[Artifact] | None = None
        self.failures: list[str] = []
        self._note = _noted(self.failures)

    @classmethod
    def small(cls, plan: Plan, clock: RunClock) -> RowFiles:
        """Made now, unless they are large: the reducers' parts are whole, and nothing of them depends on the summary."""
        rows = cls(plan, Path(plan.output.journal), target_for(plan, clock))
        if not rows._large:
            rows.make(lambda told: None)  # of an exporter that can't be used, the export tells
        return rows

    @property
    def names(self) -> list[str]:
        chosen = exporters(self._plan, self._target, BatchExporter, lambda told: None)
        return [exporter.target.file(exporter.kind).name for _, exporter in chosen]

    def make(self, note: Callable[[str], object]) -> list[Artifact]:
        """The files that are written; a further call writes nothing.  *note*: hears of exporters that can't be used."""
        if self._made is None:
            self._made = self._joined(note)
        return self._made

    @property
    def _large(self) -> bool:
        return sum(part.stat().st_size for part in self._journal.glob("part-*")) >= _LARGE_BYTES

    def _joined(self, note: Callable[[str], object]) -> list[Artifact]:
        chosen = exporters(self._plan, self._target, BatchExporter, note)
        reducer = self._plan.plugins.reducer
        if chosen and reducer is not None and not load(reducer).rows:
            log.warning("%s makes no rows of requests; not written: %s", reducer, names(self.names))
            return []
        if not self._large:
            joined = list(map(self._join, chosen))
        else:
            from concurrent.futures import ThreadPoolExecutor  # 5 ms, which a short run doesn't need

            with ThreadPoolExecutor(_JOINS) as threads:
                joined = list(threads.map(self._join, chosen))
        return [artifact for artifact in joined if artifact is not None]

    def _join(self, chosen: tuple[PluginRef, BatchExporter]) -> Artifact | None:
        """The file of an exporter's parts; None where it fails."""
        ref, exporter = chosen
        with isolated(ref, self._note):
            if dropped := list(self._journal.glob(f"part-{ref.name}-*.dropped")):
                for part in dropped:
                    part.unlink()
                again = f"make room, then: aiperf report {self._target.directory}"
                raise ConfigError("its rows have no room on a full disk", again)
            sources = parts(self._journal, ref.name)
            path = exporter.target.file(exporter.form(sources))
            _join_parts(exporter, sources, path)
            for other in {exporter.target.file(kind) for kind in exporter.files} - {path}:
                other.unlink(missing_ok=True)  # of an earlier report
            return Artifact(exporter.label, path)
        return None


class Export:
    """The export of a run, in parts, because the rows of a long run's per-request files take a while.

    *rows*: the per-request files, where they may be made already.
    written: what was written.  failures: a sentence on each exporter that failed.
    """

    def __init__(
        self, summary: Summary, plan: Plan, journal: Path, target: Target, rows: RowFiles | None = None
    ) -> None:  # fmt: skip
        self._summary, self._plan, self._journal, self._target = summary, plan, journal, target
        self._rows = RowFiles(plan, journal, target) if rows is None else rows
        self._late: list[tuple[PluginRef, SummaryExporter]] = []
        self._senders: list[tuple[PluginRef, SummaryExporter]] = []
        self.written: list[Artifact] = []
        self.failures: list[str] = []
        self._note = _noted(self.failures)

    def begin(self) -> None:
        """What needs the summary alone; it prints it.

        The marker of finished results is taken away first; :func:`mark_ready` puts it back when all is done.
        """
        with contextlib.suppress(OSError):
            (self._target.directory / READY_FILE).unlink()
        for reserve in self._journal.glob("part-reserve.*"):
            reserve.unlink()
        chosen = _summary_exporters(self._summary, self._plan, self._target, self._note)
        self._late = [pair for pair in chosen if not pair[1].early and not pair[1].sends]
        self._senders = [pair for pair in chosen if pair[1].sends]
        self._run([pair for pair in chosen if pair[1].early and not pair[1].sends])

    def complete(self) -> None:
        """The rest, once the reducers have written their parts."""
        plan, target = self._plan, self._target
        # What is wrong with an exporter of any kind is known: one sentence is enough.
        joined = self._rows.make(lambda told: told in self.failures or self._note(told))
        self.failures += self._rows.failures
        self._run(self._late)
        datasets = exporters(plan, target, DatasetExporter, lambda told: None)  # they wrote before the load
        early = [Artifact(exporter.label, exporter.target.file(exporter.kind)) for _, exporter in datasets]
        self.written = [*(artifact for artifact in early if artifact.path.exists()), *joined, *self.written]
        for artifact in self.written if plan.output.private else ():
            artifact.path.chmod(0o600)

    def send(self) -> None:
        """What sends the files elsewhere, once all are there."""
        self._run(self._senders)

    @property
    def rest(self) -> list[str]:
        """Names of the files that are made of the reducers' parts."""
        return self._rows.names

    def _run(self, chosen: Iterable[tuple[PluginRef, SummaryExporter]]) -> None:
        for ref, exporter in chosen:
            with isolated(ref, self._note):
                self.written += exporter.export(self._summary)


def run_summary_exporters(summary: Summary, plan: Plan, target: Target) -> tuple[list[Artifact], list[str]]:
    """Run them: what they wrote, and a sentence on each that failed."""
    written: list[Artifact] = []
    failures: list[str] = []
    for ref, exporter in _summary_exporters(summary, plan, target, _noted(failures)):
        with isolated(ref, _noted(failures)):
            written += exporter.export(summary)
    return written, failures


def _summary_exporters(
    summary: Summary, plan: Plan, target: Target, note: Callable[[str], None]
) -> list[tuple[PluginRef, SummaryExporter]]:
    """The summary exporters of the run.

    Exporters of every kind that can't be imported are warned of here, because this happens once a run.
    """
    absent: list[tuple[PluginRef, PluginError]] = []
    chosen = exporters(plan, target, SummaryExporter, note, absent)
    for sentence in left_out(absent):
        if not said_already(sentence, summary.warnings):
            log.warning("%s", sentence)
    with contextlib.suppress(OSError):  # the exporters say it, with the name of their file
        target.directory.mkdir(parents=True, exist_ok=True)
    return chosen


def mark_ready(target: Target, written: Iterable[Artifact], *, cancelled: bool, partial: bool) -> None:
    """Say that the results are there, and which: the last file written.

    partial: an exporter, a hook or a companion failed.
    """
    here = target.directory.absolute()
    paths = [artifact.path.absolute() for artifact in written]
    files = sorted({str(path.relative_to(here)) for path in paths if path.is_relative_to(here)})
    about = {"ready": True, "was_cancelled": cancelled, "partial": partial, "files": files}
    with atomic(target.directory / READY_FILE) as path:
        path.write_text(json.dumps(about) + "\n")
        path.chmod(0o600)


def print_footer(artifacts: Iterable[Artifact], log_file: Path | None = None) -> None:
    """``label: absolute path`` of each file, to stdout."""
    for artifact in [*artifacts, *([Artifact("Log File", log_file)] if log_file is not None else [])]:
        print(f"{artifact.label}: {artifact.path.absolute()}")
    sys.stdout.flush()


def _join_parts(exporter: BatchExporter, paths: Sequence[Path], path: Path) -> None:
    """Make *path* of the parts, which are gone then: a report makes them again, and they may be as large as the disk."""
    if len(paths) == 1 and type(exporter).join is BatchExporter.join and not exporter.header():
        with contextlib.suppress(OSError):  # on another disk
            paths[0].replace(path)
            return
    with atomic(path) as draft, draft.open("wb") as file:
        file.writelines(exporter.join(paths))
    for part in paths:
        part.unlink()


def _noted(failures: list[str]) -> Callable[[str], None]:
    """A function that logs a failure and adds it to *failures*."""

    def note(sentence: str) -> None:
        log.error("%s", sentence)
        failures.append(sentence)

    return note
