"""A reducer process: it follows the journal's segments, and writes columns and folded metrics.

    python -m aiperf.run.reducer_process ADDRESS INDEX

The segments are its queue: it may lag, die and start again.  Standard input ends with the parent; ``aiperf report`` reduces
the rest then.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import logs
from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.processes.local import ignore_endings
from aiperf.registry.third_party import load, why
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan, Secrets

if TYPE_CHECKING:
    from aiperf.reduce.reducer import Reducer, Reduction

_STEP_S = 0.1
_SHARED_STEP_S = 0.02
_SHARED_REST = 2
_IDLE_MS = 50
_LIVE_S = 0.5
_WORTH_BYTES = 8 << 20
"""More than this takes longer to read than a second process to begin."""
_RESERVE_BYTES = 1 << 20
"""Kept on the disk for the summary, in case that the disk is full when the load ends."""


class ReducerProcess:
    """A plan in this process: handles messages, and reduces between them."""

    def __init__(self, line: control.Line, index: int, journal: Path) -> None:
        self.line, self.index, self.journal = line, index, journal
        self.reducer: Reducer | None = None
        self.reductions: list[Reduction] | None = None
        self.trouble: str | None = None
        self.secrets = Secrets()
        self.over = self.released = self.crowded = self._preloaded = self._guarded = False
        self._told_s = 0.0
        self._warnings = logs.PluginWarnings()

    def run(self) -> bool:
        """Whether another plan may follow."""
        root = logging.getLogger()
        root.addHandler(self._warnings)
        try:
            return self._run()
        finally:
            root.removeHandler(self._warnings)

    def _run(self) -> bool:
        self._preload()
        rest_ms = _IDLE_MS
        while not self.over:
            message = self.line.receive(rest_ms)
            if message is not None:
                self._handle(message)
                continue
            if _parent_gone():
                return False
            rest_ms = self._step()
            self._tell_live()
        return self.released

    def _step(self) -> int:
        """Reduce new frames, and return the rest until the next step in ms.  On a full disk only the reducing ends."""
        if self.reducer is None or self.trouble is not None:
            return _IDLE_MS
        if not self._preloaded:
            self._preload_report(self.reducer.plan)
        began = time.monotonic()
        try:
            progressed = self.reducer.step(_SHARED_STEP_S if self.crowded else _STEP_S)
        except OSError as error:
            self._note_full_disk(error)
            return _IDLE_MS
        if not progressed:
            return _IDLE_MS
        return round((time.monotonic() - began) * 1000 * _SHARED_REST) if self.crowded else 0

    def _note_full_disk(self, error: OSError) -> None:
        self.trouble = f"results in {self.journal} can't be written: {error.strerror or error}"
        self.line.send(control.Trouble(self.trouble))

    def _preload(self) -> None:
        """Import modules and read the tokenizer's table while another process builds the data set."""
        from aiperf.prepare.tokenizers import open_tokenizer
        from aiperf.reduce import reducer as _imported  # noqa: F401
        from aiperf.rundir.journal import load_run

        plan = load_run(self.journal)[0]
        _import(plan.plugins.endpoint, *plan.plugins.metrics, *plan.plugins.exporters)
        with contextlib.suppress(AiperfError):  # the builder of the data set reports it
            open_tokenizer(plan)

    def _preload_report(self, plan: Plan) -> None:
        """Import what makes the summary, on a core that the load leaves idle."""
        self._preloaded = True
        from aiperf.report import report as _imported  # noqa: F401

        _import(*plan.plugins.verdicts)

    def _handle(self, message: control.Message) -> None:
        match message:
            case control.Load():
                self.secrets = message.secrets
                self._warnings.secrets = message.secrets.texts
                logs.scrub_output(message.secrets.texts)
                self.line.send(control.Ready("reducer", self.index, _trouble(self._load)))
            case control.Finish():
                trouble = _trouble(self._finish)
                self._tell_warnings()
                rows_wait = self.reducer is not None and self.reducer.rows_wait
                self.line.send(control.Reduced(self.index, trouble, rows_wait))
            case control.Summarize():
                self.line.send(control.Summarized(_trouble(self._summarize)))
            case control.WriteRows():
                failures = self._write_rows()
                self._tell_warnings()
                self.line.send(control.RowsWritten(self.index, failures))
            case control.Exit() | control.Release():
                self.over, self.released = True, isinstance(message, control.Release) and not self._guarded

    def _load(self, *, exporting: bool = True) -> None:
        from aiperf.reduce.reducer import RARELY, Reducer
        from aiperf.reduce.request_lines import DEBUG, RequestLines
        from aiperf.rundir.journal import load_run

        gc.set_threshold(*RARELY)
        plan, clock = load_run(self.journal)
        plan = self.secrets.restored(plan if exporting else plan.replacing(exporters=()))
        # Where workers, reducers, server and parent share cores, even idle time costs: caches and memory are shared.
        # On two cores a worker at its limit sent 65,000 requests/s with the reducer stopped, 47,000 beside it.
        self.crowded = (os.cpu_count() or 1) < plan.run.workers + plan.run.reducers + 2
        for stale in self.journal.glob(f"part-*-{self.index}"):
            stale.unlink()  # of one that died, whose second process may still write to it
        tell = RequestLines(plan.run.log_level, self._say).tell if plan.run.log_level <= DEBUG else None
        self.reducer = Reducer(
            plan, self.journal, self.index, plan.run.reducers, clock=clock, secret_texts=self.secrets.texts, tell=tell
        )
        if exporting:
            with contextlib.suppress(OSError), (self.journal / f"part-reserve.{self.index}").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)
        # Only cores that workers and the server under test leave idle.  A low priority is not enough: a running process
        # keeps its core for a slice of about 3 ms when another wakes.
        _schedule(os.SCHED_IDLE)

    def _say(self, level: int, lines: list[str]) -> None:
        self.line.send(control.Lines(level, lines))

    def _finish(self) -> None:
        if self.reducer is None:
            return
        if self.trouble is None:
            try:
                self._reduce_rest()
            except OSError as error:
                self._note_full_disk(error)
        if self.trouble is not None:
            self._drop_parts()
            self._load(exporting=False)
            self._reduce_rest()

    def _drop_parts(self) -> None:
        """Make room for the summary: with the reserve and the rows of per-request files, which a report makes again."""
        for part in self.journal.glob("part-*"):
            with contextlib.suppress(FileNotFoundError):  # another reducer was there first
                os.truncate(part, 0)  # it is still open
                part.rename(f"{part}.dropped")

    def _write_rows(self) -> list[str]:
        """Write the rows that waited for the summary; a sentence on each failure."""
        if self.reducer is None or not self.reducer.rows_wait:
            return []
        try:
            failures = self.reducer.write_rows()
        except OSError as error:
            self._drop_parts()
            return [f"rows in {self.journal} can't be written: {error.strerror or error}"]
        self._warnings.sentences |= dict.fromkeys(self.reducer.warned_aside)
        return failures

    def _tell_warnings(self) -> None:
        for sentence in self._warnings.sentences:
            self.line.send(control.Notice(sentence))

    def _reduce_rest(self) -> None:
        assert self.reducer is not None
        _schedule(os.SCHED_OTHER)
        from aiperf.rundir.journal import load_end

        plan, end = self.reducer.plan, load_end(self.journal)
        spare = len(os.sched_getaffinity(0)) >= 2 * plan.run.reducers
        if self.reducer.unread > _WORTH_BYTES:
            self.reducer.put_off_rows()
            if spare and plan.plugins.grader is None:  # a grader may have threads
                self.reducer.read_aside(end, lambda: self._warnings.sentences)
        while self.reducer.step(_STEP_S):
            self._tell_live()
        # One reducer makes the summary from its memory; several are merged from files.
        reduction = self.reducer.finish(end, save=plan.run.reducers > 1)
        self._warnings.sentences |= dict.fromkeys(self.reducer.warned_aside)
        self.reductions = [reduction] if plan.run.reducers == 1 else None

    def _summarize(self) -> None:
        from aiperf.report.report import write_summary

        if self.reducer is not None and self.reducer.plan.plugins.grading_timeout_s is not None:
            self._guarded = True  # by a thread that goes on until this process ends
            threading.Thread(target=_end_with_parent, daemon=True).start()  # a slow grader may take hours
        write_summary(self.journal, secrets=self.secrets, reductions=self.reductions)

    def _tell_live(self) -> None:
        if self.reducer is None or time.monotonic() - self._told_s < _LIVE_S:
            return
        self._told_s = time.monotonic()
        live = self.reducer.live
        self.line.send(control.Live(self.index, live.done, live.ttft_ms, live.itl_ms))


def _import(*plugins: PluginRef) -> None:
    """Import plugins early; who uses them reports a failure."""
    for plugin in plugins:
        with contextlib.suppress(AiperfError):
            load(plugin)


def _trouble(work: Callable[[], None]) -> str | None:
    """Do the work; why it failed, None if it did not."""
    try:
        work()
    except (OSError, AiperfError) as error:
        return "\n".join(error.lines()) if isinstance(error, AiperfError) else why(error)
    return None


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _parent_gone() -> bool:
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 4096)


def _schedule(policy: int) -> None:
    """Change how the system schedules this process, where this user is allowed to."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))


def main(address: str, index: str) -> None:
    ignore_endings()
    line = control.Line(address, f"reducer-{index}")
    line.send(control.Hello("reducer", int(index)))
    while (prepare := line.next_plan()) and ReducerProcess(line, int(index), Path(prepare.journal)).run():
        gc.collect()  # with the memory it closes files
        line.send(control.Released("reducer", int(index)))
    line.close()
    sys.stderr.flush()
    os._exit(0)  # all is written, and the teardown of this interpreter takes long


if __name__ == "__main__":
    main(*sys.argv[1:])
