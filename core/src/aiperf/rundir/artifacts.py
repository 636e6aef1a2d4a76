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

if TYPE_CHECKING:
    from aiperf.rundir.journal import RunClock
    from aiperf.sdk.descriptor import PluginRef
    from aiperf.sdk.plan import Plan
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)

MARKER = ".aiperf_results_ready.json"
"""Written last, so that a script can wait for it."""

E = TypeVar("E", bound=Exporter)


def target_for(plan: Plan, clock: RunClock) -> Target:
    """The destination and extent of the run's exports."""
    return Target(
        directory=Path(plan.output.artifacts), journal=Path(plan.output.journal), files=plan.output.files,
        prefix=plan.output.export_prefix, level=plan.output.export_level, width=environment.console_export_width(),
        verbose=plan.run.verbose, config=plan.run.config, reducers=plan.run.reducers, started_wall_ns=clock.started_wall_ns,
        phases=tuple(phase.name for phase in plan.load.phases), kinds=tuple(phase.kind for phase in plan.load.phases),
    )  # fmt: skip


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


def part_path(journal: Path, exporter: str, reducer: int) -> Path:
    """Where reducer *reducer* writes the rows of the batch exporter of this name."""
    return journal / f"part-{exporter}-{reducer}"


def parts(journal: Path, exporter: str) -> list[Path]:
    """The parts that are not empty, in the order of their reducers."""
    paths = {path.name.rpartition("-")[2]: path for path in journal.glob(f"part-{exporter}-*") if path.stat().st_size}
    return [paths[number] for number in sorted(filter(str.isdigit, paths), key=int)]


def export(summary: Summary, plan: Plan, journal: Path, target: Target) -> tuple[list[Artifact], list[str]]:
    """Write everything: what was written, and a sentence on each exporter that failed.

    The marker of finished results is taken away first; :func:`mark_ready` puts it back when all is done.
    """
    with contextlib.suppress(OSError):
        (target.directory / MARKER).unlink()
    for reserve in journal.glob("part-reserve.*"):
        reserve.unlink()
    joined: list[Artifact] = []
    failures: list[str] = []
    for ref, exporter in exporters(plan, target, BatchExporter, failures.append):
        with isolated(ref, _noted(failures)):
            if dropped := list(journal.glob(f"part-{ref.name}-*.dropped")):
                for part in dropped:
                    part.unlink()
                again = f"make room, then: aiperf report {target.directory}"
                raise ConfigError("its rows were dropped to make room for the summary on a full disk", again)
            sources = parts(journal, ref.name)
            path = exporter.target.file(exporter.form(sources))
            _join_parts(exporter, sources, path)
            for other in {exporter.target.file(kind) for kind in exporter.files} - {path}:
                other.unlink(missing_ok=True)  # of an earlier report
            joined.append(Artifact(exporter.label, path))
    written, failed = run_summary_exporters(summary, plan, target)
    # Seen again by the summary exporters' loading: one sentence is enough.
    failures += [sentence for sentence in failed if sentence not in failures]
    datasets = exporters(plan, target, DatasetExporter, lambda told: None)  # they wrote before the load
    early = [Artifact(exporter.label, exporter.target.file(exporter.kind)) for _, exporter in datasets]
    everything = [*(artifact for artifact in early if artifact.path.exists()), *joined, *written]
    for artifact in everything if plan.output.private else ():
        artifact.path.chmod(0o600)
    return everything, failures


def run_summary_exporters(summary: Summary, plan: Plan, target: Target) -> tuple[list[Artifact], list[str]]:
    """Run them: what they wrote, and a sentence on each that failed.

    Exporters of every kind that can't be imported are warned of here, because this happens once a run.
    """
    written: list[Artifact] = []
    failures: list[str] = []
    absent: list[tuple[PluginRef, PluginError]] = []
    chosen = exporters(plan, target, SummaryExporter, _noted(failures), absent)
    for sentence in left_out(absent):
        if not said_already(sentence, summary.warnings):
            log.warning("%s", sentence)
    with contextlib.suppress(OSError):  # the exporters say it, with the name of their file
        target.directory.mkdir(parents=True, exist_ok=True)
    for ref, exporter in chosen:
        with isolated(ref, _noted(failures)):
            written += exporter.export(summary)
    return written, failures


def mark_ready(target: Target, written: Iterable[Artifact], *, cancelled: bool, partial: bool) -> None:
    """Say that the results are there, and which: the last file written.  *partial*: an exporter failed."""
    here = target.directory.absolute()
    paths = [artifact.path.absolute() for artifact in written]
    files = sorted({str(path.relative_to(here)) for path in paths if path.is_relative_to(here)})
    about = {"ready": True, "was_cancelled": cancelled, "partial": partial, "files": files}
    with atomic(target.directory / MARKER) as path:
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
