"""Grading in the reducer: the chosen grader on every answer of which the data set says what it should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct

from aiperf.answer import Answer
from aiperf.columns import Column
from aiperf.grader import Grade, Grader
from aiperf.plan import Plan
from aiperf.store import Asked, Store
from aiperf.strangers import load, who, why

COLUMNS = ("graded", "correct", "unparsed", "score")


class Graded(Struct, frozen=True, omit_defaults=True):
    """What became of a request that had something to grade, with all it takes to grade it again.

    response: what the grader saw.  grade: None where there was no grading, and *ungraded* says why.
    """

    expected: str
    task: str | None = None
    response: str = ""
    grade: Grade | None = None
    ungraded: str | None = None


class Grading:
    """The run's grader.  *report* is told of its failures: whose, what, and the exception."""

    def __init__(self, plan: Plan, store: Store, report: Callable[[str, str, Exception], None]) -> None:
        self._ref, self._store, self._report = plan.grader, store, report
        self._grader: Grader | None = None
        if plan.grader is not None:
            self._grader = load(plan.grader)(plan.plugin_options(plan.grader))

    def of(self, entry: int, turn: int, answer: Answer, failed: str | None) -> Graded | None:
        """The answer's grade; None where nothing is graded.

        *failed*: why there is no answer to grade, if there is none: that says nothing about the model, and counts apart.
        """
        if self._grader is None or self._ref is None:
            return None
        asked = self._store.asked(entry, turn)
        if asked is None or asked.expected is None:
            return None
        if failed is not None:
            return Graded(asked.expected, asked.task, ungraded=failed)
        return self._graded(self._grader, asked, asked.expected, answer.text or answer.reasoning)

    def _graded(self, grader: Grader, asked: Asked, expected: str, response: str) -> Graded:
        try:
            grade = grader.grade(expected, response)
            if not isinstance(grade, Grade):
                raise TypeError(f"it gives {type(grade).__name__}, not Grade")
        except Exception as error:  # noqa: BLE001  # strangers' code
            assert self._ref is not None
            self._report(who(self._ref), why(error), error)
            return Graded(expected, asked.task, response, ungraded=f"the grader failed: {why(error)}")
        return Graded(expected, asked.task, response, grade)


def grade_columns(grades: Mapping[int, Graded], count: int) -> dict[str, Column]:
    """The columns of :data:`COLUMNS` for *count* requests, of which *grades* are the ones with something to grade, by row."""
    found = {name: np.full(count, np.nan) for name in COLUMNS}
    for row, each in grades.items():
        grade = each.grade
        found["graded"][row] = grade is not None
        if grade is not None:
            found["correct"][row] = grade.correct
            found["unparsed"][row] = grade.unparsed
            found["score"][row] = grade.correct if grade.score is None else grade.score
    return dict(found)
