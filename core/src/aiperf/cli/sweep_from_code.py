"""Several runs from Python: ``aiperf.sweep(...)`` instead of ``aiperf profile`` with lists or repeats."""

from __future__ import annotations

import contextlib
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence

from aiperf import logs
from aiperf.cli import studies
from aiperf.cli.from_code import Value, checked_line, refuse_other_threads, told_by_keyword, unchanged, warn_of_registry
from aiperf.errors import AiperfError, UsageError
from aiperf.run.start import Interruption
from aiperf.sdk.study import Study, StudyRun


def _nobody(run: StudyRun) -> None:
    pass


def sweep(
    words: str | Sequence[str] = (), /, *, console: bool = False, on_cell: Callable[[StudyRun], object] = _nobody,
    **options: Value,
) -> Study:  # fmt: skip
    """Make several runs as ``aiperf profile`` does with lists of values or ``--num-profile-runs``, and return their results::

        study = aiperf.sweep(model="m", url=url, concurrency=[1, 2, 4], num_profile_runs=3, artifact_dir="out")
        for run in study.runs:
            print(run.label, run.failed or run.summary.results["request_throughput"].stats["avg"])

    *words*, *options*, *console*: as of :func:`aiperf.profile`.  A list of several values for an option that takes one makes
    cells, where a comma separates its cells on the command line.  *on_cell*: is called with each run when it has ended, also
    with those that an earlier call measured: the same call continues what was broken off.

    A run that fails has no summary, and a sentence in ``failed``; the others go on.  The first Ctrl-C or SIGTERM ends the run
    under way and the study, which then says ``complete=False``.

    Raises:
        UsageError, ConfigError: Options are wrong, of whatever cell; or the directory has another study.
        PluginError: A plugin that was asked for can't be used.
        AiperfError: The study can't be started, or this is not the main thread.
    """
    refuse_other_threads("aiperf.sweep")
    with told_by_keyword(options):
        return _swept(shlex.split(words) if isinstance(words, str) else list(words), options, on_cell, console=console)


def _swept(
    words: Sequence[str], options: Mapping[str, Value], on_cell: Callable[[StudyRun], object], *, console: bool
) -> Study:
    with contextlib.nullcontext() if console else logs.unprinted():
        request, registry = checked_line(words, options, console=console, make=studies.requested)
    if request.base.kernel.dry_run:
        raise UsageError("--dry-run is for the command line: it has no results", "see: aiperf profile --dry-run")
    from aiperf.study.loop import run

    with unchanged(request.base) as signals, contextlib.suppress(Interruption):
        warn_of_registry(registry)
        return run(request, signals, console=console, on_run=on_cell)[0]
    number = signals.code - 128
    signal.raise_signal(number)
    raise AiperfError(f"{signal.Signals(number).name} ended the study before its results")


__all__ = ["sweep"]
