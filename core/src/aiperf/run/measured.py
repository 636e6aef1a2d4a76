"""A plan that was measured, and its files beside journal and summary: written at once, or between later loads."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aiperf import environment, logs
from aiperf.errors import AiperfError
from aiperf.redaction import owner_alone, private, scrubbed
from aiperf.registry.hooks import Hooks
from aiperf.registry.patience import calls, no_exit
from aiperf.registry.third_party import blamed
from aiperf.run.display import Display
from aiperf.run.failure import ended
from aiperf.run.start import Directories, Interruption, Outcome, without_room
from aiperf.run.steps import watched
from aiperf.sdk.model import names
from aiperf.sdk.plan import Plan, RunClock
from aiperf.sdk.ui import NoUi

if TYPE_CHECKING:
    from aiperf.rundir.artifacts import RowFiles
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)


class Measured:
    """A plan whose load is over: its journal is closed, and its summary is written.

    *flag*: that of the allowed share of failures, as typed.  *hooks*: of this process.  *rows*: files that are made already.
    directory: of the run.  begin_ns, end_ns: monotonic instants of the first phase's begin and of the last answer, 0 where
    there was none.  aborted: requests that had no whole answer when the load ended.
    code: the exit code; until the files are written without what these add.  fault: why the results don't count, "" where they
    do.  finished: whether the files are written, or can't be.  files: absolute paths of those that are.
    """

    def __init__(
        self, plan: Plan, clock: RunClock, outcome: Outcome, directories: Directories, hooks: Hooks, flag: str,
        rows: RowFiles | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._clock, self._outcome = plan, clock, outcome
        self._directories, self._hooks, self._flag = directories, hooks, flag
        self._rows = rows
        self._row_failures: list[str] = []
        self._equipment: dict[str, Any] = {}
        self._summary: Summary | None = None
        self.directory = directories.artifacts
        self.files: tuple[str, ...] = ()
        self.finished = False
        summary = self.summary
        self.begin_ns, self.end_ns = outcome.times.get("begin_ns", 0), outcome.times.get("last_answer_ns", 0)
        self.aborted: int = summary.outcomes.get("aborted", 0)
        self.code, self.fault = 0, ""

    @property
    def summary(self) -> Summary:
        """The summary, from memory or from its file.

        Raises:
            PluginError: The file can't be read.
        """
        if self._summary is None:
            from aiperf.sdk.summary import Summary

            with blamed(self._plan.plugins.reducer, "has left no summary that can be read"):
                packed = (self._directories.journal / "summary.msgpack").read_bytes()
                summary = msgspec.msgpack.decode(packed, type=Summary)
            study_id = self._plan.run.study_id
            self._summary = msgspec.structs.replace(summary, directory=str(self.directory.absolute()), study_id=study_id)
        return self._summary

    @property
    def load_s(self) -> float:
        """How long the load took, in seconds."""
        return max(0, self.end_ns - self.begin_ns) / 1e9

    def put_off(self, row_failures: list[str]) -> None:
        """The files come later: let go of what takes memory.  *row_failures*: sentences on the reducers' parts of them."""
        self._row_failures, self._equipment = row_failures, self._hooks.equipment()
        _, self.code, self.fault = ended(self.summary, self._plan, self._outcome, self._flag, failed=False)
        self._hooks.call("aiperf_summary_made", summary=self.summary)
        self._outcome.stamp("put_off_ns")
        self._save_times()
        self._summary = None

    def finish_files(self) -> int:
        """Write what is missing; the exit code.  Further calls do nothing.

        An exporter that fails is told in the log, and makes the exit code 1.

        Raises:
            AiperfError: There is no room for them; what was observed is in the journal.
            Interruption: A second signal.
        """
        if self.finished:
            return self.code
        outcome, code = self._outcome, self.code
        self.finished, self.code = True, code or 1
        try:
            with (
                owner_alone(self._plan.output.private),
                logs.only_to_file(self._directories.log_file, self._plan.run.log_level, outcome.secret_texts),
                calls.watched(environment.plugin_s()),
                no_exit(outcome.warn),
                self._hooks.equipped(self._equipment),
                self._own_output(),
            ):
                try:
                    failures = self._write(Display(NoUi(), ""), lambda: self._row_failures)
                finally:
                    self._hooks.call("aiperf_teardown")
        except AiperfError as error:
            error.message = scrubbed(error.message, outcome.secret_texts)
            raise
        except OSError as error:
            raise without_room(error, self._plan.output) from error
        finally:
            self._summary = None
            self.close()
        self.code = code or int(failures or outcome.plugin_failed)
        return self.code

    def write_now(self, display: Display, rows: Callable[[], list[str]]) -> None:
        """Write the files as a part of the run.  *rows*: lets the reducers write their parts; sentences on what failed."""
        self.finished = True
        with self._own_output():
            failures = self._write(display, rows)
        _, self.code, self.fault = ended(self.summary, self._plan, self._outcome, self._flag, failed=failures)

    def drop(self) -> None:
        """The files that were put off stay unwritten."""
        if not self.finished:
            with no_exit(self._outcome.warn), self._hooks.equipped(self._equipment), self._own_output():
                self._hooks.call("aiperf_teardown")
        self.close()

    def close(self) -> None:
        """Let go of the directory, with or without its files.  May be called again."""
        self.finished = True
        self._directories.close()

    def _write(self, display: Display, rows: Callable[[], list[str]]) -> bool:
        """Whether something failed."""
        from aiperf.rundir import artifacts

        plan, outcome, summary, hooks = self._plan, self._outcome, self.summary, self._hooks
        journal: Path = self._directories.journal
        outcome.stamp("export_ns")
        for phase in summary.phases:
            log.info("Phase %s (%s) | %s succeeded, %s failed", phase.name, phase.kind, phase.valid, phase.failed)
        if not display.draws:
            display.close()
        if "put_off_ns" not in outcome.times:
            hooks.call("aiperf_summary_made", summary=summary)
        to = artifacts.target_for(plan, self._clock)
        exporting = artifacts.Export(summary, plan, journal, to, self._rows)
        with watched(display, "Writing the files"):
            exporting.begin()
        try:
            failures = rows()
        except (AiperfError, Interruption):
            outcome.signals.say(f"aiperf: not written: {names(exporting.rest)}")
            raise
        with watched(display, "Writing the files"):
            exporting.complete()
        display.close()
        written = exporting.written
        for files in hooks.call("aiperf_export", summary=summary, target=to) or ():
            written += files or []
        self.files = tuple(str(Path(artifact.path).absolute()) for artifact in written)
        if not plan.run.study_id:  # behind the last run, what sends sends the files of all
            exporting.send()
        failures = [*failures, *exporting.failures, *summary.extra.get("failures", [])]
        artifacts.print_footer(written, self._directories.log_file)
        artifacts.mark_ready(to, written, cancelled=summary.cancelled, partial=bool(failures) or outcome.plugin_failed)
        outcome.stamp("exported_ns")
        self._save_times()
        hooks.call("aiperf_run_ended", summary=summary)
        return bool(failures)

    def _own_output(self) -> contextlib.AbstractContextManager[object]:
        """Exporters and hooks print as they like; a calling program's standard output is its own."""
        return contextlib.nullcontext() if self._outcome.console else _unprinted()

    def _save_times(self) -> None:
        times = json.dumps(self._outcome.times, indent=2)
        private(self._directories.journal / "run-times.json").write_text(times + "\n")


def load_exporters(plan: Plan) -> None:
    """Import what writes the results, while other processes still work."""
    from aiperf.rundir import artifacts

    artifacts.load_exporters(plan)


def small_rows(plan: Plan, clock: RunClock) -> RowFiles:
    """The per-request files, made now unless they are large."""
    from aiperf.rundir.artifacts import RowFiles

    return RowFiles.small(plan, clock)


@contextlib.contextmanager
def _unprinted() -> Iterator[None]:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
