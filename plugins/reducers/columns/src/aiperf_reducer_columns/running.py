"""A reducer's work beside the load, in its process: when it works, what it leaves to others, and what a full disk costs."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from typing import TYPE_CHECKING

from aiperf.parts.journal import load_end
from aiperf.parts.processes import ask_for_short_slices, cpus, level_with_parent, set_session_nice, work_apart
from aiperf.sdk.reducer import Ended, Live, ReducerJob, RunningReduction
from aiperf.sdk.snapshot import Snapshot, VerdictSoFar

from aiperf_reducer_columns.imported import imported
from aiperf_reducer_columns.reduce.reducer import RARELY, Reduction, ShardReducer
from aiperf_reducer_columns.reduce.request_lines import DEBUG, RequestLines
from aiperf_reducer_columns.reduce.so_far import VerdictsSoFar

if TYPE_CHECKING:
    from aiperf_reducer_columns.report.report import Merging

_STEP_S = 0.1
_SHARED_STEP_S = 0.02
_SHARED_REST = 2
"""A rest in units of the step before it, where cores are shared with the load."""
_MOST_REST_MS = 500
_NICE = 10
"""Of the reducer's session beside the load: with short slices it leaves a core as soon as with the lowest priority, and has a
tenth of one that somebody keeps busy."""
_IDLE_MS = 50
_WORTH_BYTES = 8 << 20
"""More than this takes longer to read than a second process to begin."""
_RESERVE_BYTES = 1 << 20
"""Kept on the disk for the summary, in case that the disk is full when the load ends."""


class ColumnsReduction(RunningReduction):
    """Follows the journal's segments, and writes columns and folded metrics."""

    def __init__(self, job: ReducerJob) -> None:
        self.job, self.journal = job, job.journal
        self.slow = job.plan.plugins.grading_timeout_s is not None
        self._reductions: list[Reduction] | None = None
        self._merged: Merging | None = None
        self._trouble: str | None = None
        self._preloaded, self._apart = False, True
        self._so_far = VerdictsSoFar(job.plan, job.journal)
        # Where workers, reducers, server and parent share cores, even idle time costs: caches and memory are shared.
        # On two cores a worker at its limit sent 65,000 requests/s with the reducer stopped, 47,000 beside it.
        self._crowded = cpus() < job.plan.run.workers + job.plan.run.reducers + 2
        gc.set_threshold(*RARELY)
        for stale in self.journal.glob(f"part-*-{job.index}"):
            stale.unlink()  # of one that died, whose second process may still write to it
        self.reducer = self._begun()
        with contextlib.suppress(OSError), (self.journal / f"part-reserve.{job.index}").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)
        # Only cores that workers and the server under test leave idle.  A low priority is not enough: it counts among the
        # processes of one session alone, and a running process keeps its core for a slice of about 3 ms when another wakes.
        # Most users can't take the low priority back: behind the load the run replaces a reducer that gets no core, and the new
        # one never has it.
        if load_end(self.journal) is None:
            ask_for_short_slices()
            self._apart = work_apart(_NICE, tries=1)  # the load waits for this process
            _schedule(os.SCHED_IDLE)

    def _begun(self, *, exporting: bool = True) -> ShardReducer:
        job = self.job
        plan = job.plan if exporting else job.plan.replacing(exporters=())
        tell = RequestLines(plan.run.log_level, job.say).tell if plan.run.log_level <= DEBUG else None
        return ShardReducer(
            plan, self.journal, job.index, plan.run.reducers, clock=job.clock, secret_texts=job.secrets.texts, tell=tell,
            lines_s=job.lines_s if job.watched else None, looked=job.looked,
        )

    @property
    def live(self) -> Live:
        watch = self.reducer.watch
        return Live(self.done) if watch is None else watch.live(self.done)

    @property
    def done(self) -> int:
        return self.reducer.live.done

    def judge(self, snapshot: Snapshot) -> VerdictSoFar | None:
        return self._so_far.judge(snapshot)

    def take_part(self, part: bytes) -> None:
        if self.reducer.watch is not None:
            self.reducer.watch.take_part(part)

    def ended(self) -> list[Ended]:
        return [] if self.reducer.recent is None else self.reducer.recent.taken()

    @property
    def rows_wait(self) -> bool:  # type: ignore[override]  # False until rows are put off
        return self.reducer.rows_wait

    @property
    def warned(self) -> list[str]:  # type: ignore[override]  # none until a second process has read
        return self.reducer.warned_aside

    def step(self) -> int:
        """Reduce new frames.  On a full disk only the reducing ends."""
        if self._trouble is not None:
            return _IDLE_MS
        if not self._preloaded:
            self._preload_report()
        if not self._apart:
            self._apart = set_session_nice(os.getpid(), _NICE) is not None
        began = time.monotonic()
        try:
            progressed = self.reducer.step(_SHARED_STEP_S if self._crowded else _STEP_S)
        except OSError as error:
            self._note_full_disk(error)
            return _IDLE_MS
        if not progressed:
            return _IDLE_MS
        # A step that waited for a core says nothing about the work that is left, so the rest has a bound.
        took_ms = (time.monotonic() - began) * 1000
        return min(round(took_ms * _SHARED_REST), _MOST_REST_MS) if self._crowded else 0

    def finish(self) -> None:
        if self._trouble is None:
            try:
                self._reduce_rest()
            except OSError as error:
                self._note_full_disk(error)
        if self._trouble is not None:
            self._drop_parts()
            self.reducer = self._begun(exporting=False)
            self._reduce_rest()

    def prepare_summary(self) -> None:
        from aiperf_reducer_columns.report.report import merged_early

        if not self._preloaded:
            self._preload_report()
        self._merged = merged_early(self.journal, self.job.secrets, self._reductions)

    def summarize(self) -> None:
        from aiperf_reducer_columns.report.report import write_summary

        merged, self._merged = self._merged, None
        write_summary(self.journal, secrets=self.job.secrets, reductions=self._reductions, merged=merged, job=self.job)

    def write_rows(self) -> list[str]:
        if not self.rows_wait:
            return []
        try:
            return self.reducer.write_rows()
        except OSError as error:
            self._drop_parts()
            return [f"rows in {self.journal} can't be written: {error.strerror or error}"]

    def _preload_report(self) -> None:
        """Import what makes the summary, on a core that the load leaves idle."""
        self._preloaded = True
        from aiperf_reducer_columns.report import report as _imported  # noqa: F401

        imported(*self.job.plan.plugins.verdicts, *self.job.plan.plugins.tables)

    def _note_full_disk(self, error: OSError) -> None:
        self._trouble = f"results in {self.journal} can't be written: {error.strerror or error}"
        self.job.trouble(self._trouble)

    def _drop_parts(self) -> None:
        """Make room for the summary: with the reserve and the rows of per-request files, which a report makes again."""
        for part in self.journal.glob("part-*"):
            with contextlib.suppress(FileNotFoundError):  # another reducer was there first
                os.truncate(part, 0)  # it is still open
                part.rename(f"{part}.dropped")

    def _reduce_rest(self) -> None:
        _schedule(os.SCHED_OTHER)
        level_with_parent(os.getpid())
        self._apart = True
        run, end = self.job.plan.run, load_end(self.journal)
        if self.reducer.unread > _WORTH_BYTES:
            self.reducer.put_off_rows()
            if cpus() >= 2 * run.reducers and self.job.plan.plugins.grader is None:  # it may have threads
                self.reducer.read_aside(end, self.job.warned)
        while self.reducer.step(_STEP_S):
            self.job.moved()
        # One reducer makes the summary from its memory; several are merged from files.
        reduction = self.reducer.finish(end, save=run.reducers > 1)
        self._reductions = [reduction] if run.reducers == 1 else None


def _schedule(policy: int) -> None:
    """Change how the system schedules this process, where this user is allowed to."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))
