"""The {{ cookiecutter.name }} reducer: how many requests of each phase succeeded and failed, counted from the journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from aiperf.parts.journal import RunClock, hold, load_end, load_run, numbered
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.plan import Plan
from aiperf.sdk.reducer import Live, Reducer, ReducerJob, RunningReduction
from aiperf.sdk.summary import Summary

from {{ cookiecutter.__module }}.counting import Counts, Cursor
from {{ cookiecutter.__module }}.summing import write_summary

_STEP_S, _REST_MS = 0.1, 50


class {{ cookiecutter.__class }}(Reducer[None]):
    """Counts what workers observed, and decodes no answer.

    The segments are the only store: they stay, and a reducer that begins again reads them from their beginning.
    """

    rows = False

    def begin(self, job: ReducerJob) -> RunningReduction:
        return Counting(job)

    def report(self, directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, RunClock]:
        journal = directory / "journal"
        plan, clock = load_run(journal)
        if not numbered(journal, "shard-*.seg"):
            raise BadJournal(f"{directory} has no segments: nothing was observed, or another reducer has deleted them")
        plan = plan.replacing(artifacts=str(directory.absolute()), journal=str(journal.absolute()))
        plan = plan if change is None else change(plan)
        with hold(journal):
            counts = Counts()
            for shard in range(plan.run.workers):
                Cursor(journal, shard, counts).read()
            return write_summary(journal, plan, clock, load_end(journal), [counts]), plan, clock


class Counting(RunningReduction):
    """Follows the segments of every worker whose number modulo the number of reducers is that of this reducer."""

    def __init__(self, job: ReducerJob) -> None:
        self.job, self.counts = job, Counts()
        run = job.plan.run
        self.cursors = [Cursor(job.journal, shard, self.counts) for shard in range(job.index, run.workers, run.reducers)]

    @property
    def live(self) -> Live:
        return Live(self.counts.ended)

    def step(self) -> int:
        until_s = time.monotonic() + _STEP_S
        moved = [cursor.read(until_s) for cursor in self.cursors]
        return 0 if any(moved) else _REST_MS

    def finish(self) -> None:
        for cursor in self.cursors:
            cursor.read()
        self.counts.save(self.job.journal, self.job.index)

    def summarize(self) -> None:
        journal, plan = self.job.journal, self.job.plan
        parts = [Counts.saved(journal, index) for index in range(plan.run.reducers)]
        write_summary(journal, plan, self.job.clock, load_end(journal), parts)
