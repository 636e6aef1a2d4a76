"""Results to files: how every process loads the exporters, and what the parent does with what they made.

Reducers append the rows of a :class:`~aiperf.exporter.BatchExporter` to ``<journal>/part-<exporter>-<reducer>``; the
parent joins the parts.  An exporter that fails is reported by name and version, and never keeps the others from running.
One that can't even be imported takes no part: nobody asked for it by name, so it is one warning, and no failure of the run.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aiperf import environment
from aiperf.errors import AiperfError
from aiperf.exporter import LEVELS, Artifact, BatchExporter, DatasetExporter, Exporter, SummaryExporter, Target, atomic

if TYPE_CHECKING:
    from aiperf.descriptor import PluginRef
    from aiperf.plan import Plan
    from aiperf.rundir import RunClock
    from aiperf.summary import Summary

log = logging.getLogger(__name__)

MARKER = ".aiperf_results_ready.json"
"""Written last, so that a script can wait for it."""

E = TypeVar("E", bound=Exporter)


def target_for(plan: Plan, clock: RunClock) -> Target:
    """Where the run's results go, and how much of them."""
    return Target(
        directory=Path(plan.artifacts),
        prefix=plan.export_prefix,
        level=plan.export_level,
        width=environment.console_export_width(),
        verbose=plan.verbose,
        started_wall_ns=clock.started_wall_ns,
        phases=tuple(phase.name for phase in plan.phases),
        kinds=tuple(phase.kind for phase in plan.phases),
        reducers=plan.reducers,
        journal=Path(plan.journal),
        config=plan.config,
    )


def summary_exporters(plan: Plan, target: Target) -> list[tuple[PluginRef, SummaryExporter]]:
    """The exporters that read the summary; one that can't be loaded is left out with a warning."""
    return _warned(_loaded(plan, target, SummaryExporter))


def batch_exporters(plan: Plan, target: Target) -> list[tuple[PluginRef, BatchExporter]]:
    """The exporters of per-request files, likewise."""
    return _warned(_loaded(plan, target, BatchExporter))


def dataset_exporters(plan: Plan, target: Target) -> list[tuple[PluginRef, DatasetExporter]]:
    """The exporters that see the data set, likewise."""
    return _warned(_loaded(plan, target, DatasetExporter))


def part_path(journal: Path, exporter: str, reducer: int) -> Path:
    """Where reducer *reducer* writes the rows of the batch exporter of this name."""
    return journal / f"part-{exporter}-{reducer}"


def parts(journal: Path, exporter: str) -> list[Path]:
    """The parts that hold anything, in the order of their reducers."""
    found = {path.name.rpartition("-")[2]: path for path in journal.glob(f"part-{exporter}-*") if path.stat().st_size}
    return [found[number] for number in sorted((word for word in found if word.isdigit()), key=int)]


def export(summary: Summary, plan: Plan, journal: Path, target: Target) -> tuple[list[Artifact], list[str]]:
    """Write everything: what was written, and a sentence on each exporter that failed.

    The marker of finished results is taken away first; :func:`mark_ready` puts it back when all is done.
    """
    with contextlib.suppress(OSError):
        (target.directory / MARKER).unlink()
    written, failures = _join(journal, plan, target)
    made, failed = run_summary_exporters(summary, plan, target)
    # Seen again by the summary exporters' loading: one sentence is enough.
    failures += [sentence for sentence in failed if sentence not in failures]
    return [*dataset_artifacts(plan, target), *written, *made], failures


def join_parts(journal: Path, plan: Plan, target: Target) -> list[Artifact]:
    """Join the reducers' parts to the final files, each in the order of the reducers, below its header."""
    return _join(journal, plan, target)[0]


def run_summary_exporters(summary: Summary, plan: Plan, target: Target) -> tuple[list[Artifact], list[str]]:
    """Run them: what they wrote, and a sentence on each that failed.

    Exporters of every kind that can't be imported are warned of here, because this happens once a run.
    """
    found = _loaded(plan, target, SummaryExporter)
    exporters, failures = found.exporters, found.failures
    for sentence in found.absent:
        log.warning("%s", sentence)
    for sentence in failures:
        log.error("%s", sentence)
    written: list[Artifact] = []
    with contextlib.suppress(OSError):  # the exporters say it, with the name of their file
        target.directory.mkdir(parents=True, exist_ok=True)
    for ref, exporter in exporters:
        try:
            written += exporter.export(summary)
        except Exception as error:  # noqa: BLE001  # strangers' code
            failures.append(_failed(ref, error))
    return written, failures


def dataset_artifacts(plan: Plan, target: Target) -> list[Artifact]:
    """What the dataset exporters wrote before the load."""
    exporters = _loaded(plan, target, DatasetExporter).exporters
    written = [Artifact(exporter.label, target.file(exporter.kind)) for _, exporter in exporters]
    return [artifact for artifact in written if artifact.path.exists()]


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
    files = [*artifacts, *([Artifact("Log File", log_file)] if log_file is not None else [])]
    for artifact in files:
        print(f"{artifact.label}: {artifact.path.absolute()}")
    sys.stdout.flush()


class _Loaded(Generic[E]):
    """Exporters of one kind; a sentence on each that can't be made (*failures*), on each that can't be imported (*absent*)."""

    def __init__(self) -> None:
        self.exporters: list[tuple[PluginRef, E]] = []
        self.failures: list[str] = []
        self.absent: list[str] = []


def _loaded(plan: Plan, target: Target, kind: type[E]) -> _Loaded[E]:
    loaded = _Loaded[E]()
    for ref in plan.exporters:
        try:
            found = ref.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a stranger's module may raise anything while it is imported
            loaded.absent.append(f"{_who(ref)} can't be imported, and is left out: {_why(error)}")
            continue
        try:
            if issubclass(found, kind) and LEVELS.index(found.level) <= LEVELS.index(target.level):
                made = found(target, plan.plugin_options(ref))
                if made.wanted():
                    loaded.exporters.append((ref, made))
        except Exception as error:  # noqa: BLE001  # strangers' code
            loaded.failures.append(f"{_who(ref)} can't be used: {_why(error)}")
    return loaded


def _warned(loaded: _Loaded[E]) -> list[tuple[PluginRef, E]]:
    for sentence in loaded.failures:
        log.warning("%s", sentence)
    return loaded.exporters


def _join(journal: Path, plan: Plan, target: Target) -> tuple[list[Artifact], list[str]]:
    found = _loaded(plan, target, BatchExporter)
    exporters, failures = found.exporters, found.failures
    written = []
    for ref, exporter in exporters:
        path = target.file(exporter.kind)
        try:
            _joined(exporter, parts(journal, ref.name), path)
        except Exception as error:  # noqa: BLE001  # strangers' code
            failures.append(_failed(ref, error))
            continue
        written.append(Artifact(exporter.label, path))
    return written, failures


def _joined(exporter: BatchExporter, found: Sequence[Path], path: Path) -> None:
    """Make *path* of the parts, which are gone then: a report makes them again, and they may be as large as the disk."""
    plain = type(exporter).join is BatchExporter.join and not exporter.header()
    if plain and len(found) == 1:
        with contextlib.suppress(OSError):  # on another disk
            found[0].replace(path)
            return
    with atomic(path) as draft, draft.open("wb") as file:
        for piece in exporter.join(found):
            file.write(piece)
    for part in found:
        part.unlink()


def _failed(ref: PluginRef, error: Exception) -> str:
    sentence = f"{_who(ref)} failed: {_why(error)}"
    log.error("%s", sentence)
    log.debug("the traceback:", exc_info=error)
    return sentence


def _who(ref: PluginRef) -> str:
    return f"exporter plugin {ref.name!r} of {ref.distribution} {ref.version}"


def _why(error: Any) -> str:
    if isinstance(error, AiperfError):
        return "; ".join(line.strip() for line in error.lines())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"
