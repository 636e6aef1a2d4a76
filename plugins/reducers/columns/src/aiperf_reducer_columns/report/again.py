"""Reducing a run's journal again: for a report, for answers that wait for a slow grader, and for another grader."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.plan import Plan
from aiperf.sdk.reducer import ReducerJob

from aiperf_reducer_columns.reduce.batches import REST
from aiperf_reducer_columns.reduce.reducer import Reduction, ShardReducer
from aiperf_reducer_columns.reduce.regrading import columns_have_answers, segments_are_whole

if TYPE_CHECKING:
    from aiperf_reducer_columns.reduce.slow_grading import GradingWatch


_GRADING = "Grading"
_LOGGED_EVERY_S = 30.0


def begin_grading(plan: Plan, journal_path: Path) -> None:
    """Refuse a run that can't be graded again.

    Raises:
        AiperfError: The data set expects nothing, or the answers are gone.
    """
    from aiperf_reducer_columns.reduce.slow_grading import AGAIN

    (journal_path / AGAIN).unlink(missing_ok=True)
    if not Store(journal_path).graded:
        raise AiperfError("there is nothing to grade: the run's data set has no expected answers", "drop --accuracy-grader")
    if not segments_are_whole(plan, journal_path) and not columns_have_answers(journal_path):
        raise AiperfError(
            "the answers can't be graded again: the run has not kept them",
            "run with a grader or with --export-level raw, which keep every answer, or drop --accuracy-grader",
        )


def reduced_again(
    plan: Plan, clock: journal.RunClock, journal_path: Path, *, finishing: bool = False, watch: GradingWatch | None = None
) -> Reduction:  # fmt: skip
    """The work of all reducers made anew, with the parts of batch exporters."""
    for stale in [*journal_path.glob("folds-*"), *journal_path.glob("part-*")]:
        stale.unlink()
    shutil.rmtree(journal_path / REST, ignore_errors=True)  # of a report that was killed
    if plan.plugins.grading_timeout_s is None:
        reducer = ShardReducer(plan, journal_path, 0, 1, clock=clock, durable=False, finishing=finishing)
        return reducer.finish(journal.load_end(journal_path), save=False)
    from aiperf_reducer_columns.reduce.slow_grading import GradingWatch, SlowGrading

    with SlowGrading(plan, journal_path, Store(journal_path), watch or GradingWatch()) as slow:
        reducer = ShardReducer(plan, journal_path, 0, 1, clock=clock, durable=False, finishing=finishing, slow=slow)
        reduction = reducer.finish(journal.load_end(journal_path), save=False)
        reduction.failures += [] if slow.sentence is None else [slow.sentence]
        reduction.notes += [grades_wait(slow.left)] if slow.left else []
        return reduction


def grades_wait(answers: int) -> str:
    """The warning of a run that ended before its answers were graded."""
    return f"{answers:,} answers are not graded yet: aiperf report grades them"


def watch_for(job: ReducerJob | None, pending: int) -> GradingWatch | None:
    """How the run hears of *pending* grades that it waits for; None in a report."""
    from aiperf_reducer_columns.reduce.slow_grading import GradingWatch

    if job is None:
        return None
    told_s = time.monotonic()

    def tell(done: int, known: int) -> None:
        nonlocal told_s
        job.far(_GRADING, done, known, "answers")
        if time.monotonic() - told_s > _LOGGED_EVERY_S:  # a display that draws shows it anyway
            told_s = time.monotonic()
            job.say(logging.INFO, [f"{_GRADING}: {done:,} of {known:,} answers"])

    return GradingWatch(job.hurried, tell, pending)
