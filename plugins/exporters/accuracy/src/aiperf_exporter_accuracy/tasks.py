"""The numbers of each task, and of all together, from the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aiperf import Result, Summary

OVERALL = "OVERALL"


class TaskRow(NamedTuple):
    """A task, or OVERALL.

    correct, total: right and graded answers.  unparsed: graded ones from which nothing was extracted.  accuracy: 0 to 1.
    failed: requests without an answer; ungraded: answers that the grader left; neither is in *total*.  ci_low, ci_high:
    Wilson's interval.  accuracy, ci_low, ci_high: None where nothing was graded.
    """

    task: str
    correct: int
    total: int
    unparsed: int
    accuracy: float | None
    failed: int
    ungraded: int
    ci_low: float | None
    ci_high: float | None


def task_rows(summary: Summary) -> list[TaskRow]:
    """The tasks by name, then OVERALL; empty where no answer was expected."""
    if "accuracy.answers" not in summary.results:
        return []
    main = next((phase.index for phase in summary.phases if phase.kind == "profiling"), -1)
    tasks = [group for group in summary.groups if group.text == "task" and group.phase == main]
    rows = [_row(group.key, group.results) for group in tasks if "accuracy.answers" in group.results]
    return [*rows, _row(OVERALL, summary.results)]


def _row(task: str, results: Mapping[str, Result]) -> TaskRow:
    counts, overall, unparsed = (results.get(f"accuracy.{name}") for name in ("answers", "overall", "unparsed"))
    states = {} if counts is None else counts.counts
    correct, total, accuracy = (0, 0, None) if overall is None else (
        round(overall.stats["sum"]), round(overall.stats["count"]), overall.stats["avg"],
    )  # fmt: skip
    interval = None if overall is None else overall.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    nothing = 0 if unparsed is None else round(unparsed.stats["sum"])
    return TaskRow(task, correct, total, nothing, accuracy, states.get("failed", 0), states.get("ungraded", 0), low, high)


__all__ = ["OVERALL", "TaskRow", "task_rows"]
