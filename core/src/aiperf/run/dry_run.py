"""``aiperf profile --dry-run``: what a run would do, its first and its longest request, and nothing is sent.

The plan is that of the run, and its builder makes the data set as far as the run's would before the load, in a temporary
directory.  No process of the load is started: this one rehearses the first request with a worker's code.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import environment, logs
from aiperf.errors import AiperfError, ConfigError
from aiperf.planning import configure
from aiperf.planning.problems import ReadingInterrupted, Settings
from aiperf.processes.title import hide
from aiperf.redaction import harmless, scrubbed
from aiperf.registry.imports import IMPORTS
from aiperf.registry.patience import calls, no_exit
from aiperf.run.builder import Builder, built
from aiperf.run.display import Display
from aiperf.run.run import in_process
from aiperf.run.start import Interruption, Outcome, Signals, check_open_files
from aiperf.run.steps import step
from aiperf.run.watchers import Watchers
from aiperf.rundir.artifacts import planned_files
from aiperf.rundir.store_form import made
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.ui import NoUi

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

_POLL_S = 0.01


def dry_run(settings: Settings, registry: Registry) -> int:
    """Print what the settings ask for; returns the exit code.

    Raises:
        AiperfError: The run could not be started.
    """
    with Signals().caught() as signals:
        try:
            print(harmless(page_of(settings, registry, signals)), end="")
        except Interruption:
            return signals.code
    return 0


def page_of(settings: Settings, registry: Registry, signals: Signals) -> str:
    """The page of a dry run.

    Raises:
        AiperfError: The run could not be started.
        Interruption: A signal came.
    """
    quiet = settings.kernel.quiet
    with contextlib.ExitStack() as stack:

        def hide_own(texts: Sequence[str]) -> None:
            hide(texts)
            stack.enter_context(logs.errors_scrubbed(texts))

        logs.to_console(settings.log_level, quiet=quiet)
        try:
            plan, secrets = configure.plan(settings, registry, hide_own)
        except ReadingInterrupted:
            signals.check()
            raise
        check_open_files(plan)
        with contextlib.closing(_display(plan, registry)) as display:
            signals.say = display.interject
            logs.to_console(settings.log_level, display.log, quiet=quiet)
            logs.scrub(secrets.texts)
            try:
                return _rehearsed(plan, settings, secrets, signals, display)
            except AiperfError as error:
                error.message = scrubbed(error.message, secrets.texts)
                raise


def _display(plan: Plan, registry: Registry) -> Display:
    """The plan's display, if it needs no process of its own: it would show a step at most."""
    if not in_process(plan, registry):
        return Display(NoUi(), "")
    return Watchers().display_of(plan, in_process=True, kept=False)


def _rehearsed(plan: Plan, settings: Settings, secrets: Secrets, signals: Signals, display: Display) -> str:
    """The page of the plan."""
    outcome = Outcome(signals, secret_texts=secrets.texts)
    with contextlib.ExitStack() as stack:
        temporary = partial(tempfile.TemporaryDirectory, prefix="aiperf-dry-run-", ignore_cleanup_errors=True)
        try:
            folder = Path(stack.enter_context(temporary()))
        except OSError as error:
            hint = "name another one with the variable TMPDIR"
            raise ConfigError(f"no temporary directory can be made: {error.strerror or error}", hint) from error
        inside = plan.replacing(journal=str(folder), artifacts=str(folder), exporters=())
        IMPORTS.rest()
        own = Builder(inside, lambda: logs.scrub_output(secrets.texts), display.log)
        builder = stack.enter_context(contextlib.closing(own))
        stack.enter_context(calls.watched(environment.plugin_s()))
        stack.enter_context(no_exit(outcome.warn))
        from aiperf.run import dry_json, dry_page  # these and the files' exporters while the builder works
        from aiperf.worker.rehearsal import rehearse

        files = planned_files(plan)
        with step(display, "Making the data set", lambda: (made(folder), None, "entries")) as tell:
            while not builder.poll(_POLL_S):
                signals.check()
                tell()
        whole = built(builder, plan, settings)
        write = dry_json.document if settings.kernel.as_json else dry_page.page
        rehearsal = rehearse(whole, secrets, folder, outcome.warn, signals.check)
        return write(plan, whole, rehearsal, files, partial(scrubbed, secrets=secrets.texts))
