"""Grading in the reducer: the run's grader on every answer with an expectation in the data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from aiperf.parts.journal import Store
from aiperf.parts.loading import calls, failure, load, why
from aiperf.sdk.columns import GRADE_COLUMNS, Column
from aiperf.sdk.grader import Case, Grade, Grader, takes_case
from aiperf.sdk.model import ToolCall
from aiperf.sdk.plan import Plan
from msgspec import Struct

from aiperf_reducer_columns.reduce.answer import Answer
from aiperf_reducer_columns.reduce.checked_grades import checked

NOT_YET = "not graded yet"
"""Of an answer that waits for a slow grader."""


class Pending(Struct, frozen=True, omit_defaults=True):
    """The answer to a turn, for a slow grader."""

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class Graded(Struct, frozen=True, omit_defaults=True):
    """The grade of a request with an expected answer, and all that grading it again takes.

    response: the text that the grader read.  grade: None where grading was impossible; *ungraded* says why.
    pending: the answer that a slow grader has yet to grade; None otherwise.  tool_calls: of the answer.
    """

    expected: str
    task: str | None = None
    response: str = ""
    grade: Grade | None = None
    ungraded: str | None = None
    pending: Pending | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class Grading:
    """The run's grader.  *report* gets its failures: the plugin, and a sentence."""

    def __init__(self, plan: Plan, store: Store, report: Callable[[str, str], None]) -> None:
        self._ref, self._store, self._report = plan.plugins.grader, store, report
        options = plan.plugins.options_of
        self._slow = plan.plugins.grading_timeout_s is not None
        self._grader: Grader | None = None if self._ref is None or self._slow else load(self._ref)(options(self._ref))
        self._takes_case = self._grader is not None and takes_case(self._grader)
        self.wanted = self._ref is not None
        """Whether answers are graded."""

    def of(self, entry: int, turn: int, answer: Answer, failed: str | None) -> Graded | None:
        """The grade of the answer, or of its first choice; None where nothing is expected.

        *failed*: why there is no answer.  A missing answer says nothing about the model, and counts apart.
        """
        if self._ref is None:
            return None
        asked = self._store.expectation(entry, turn)
        if asked is None or asked.expected is None:
            return None
        if failed is not None:
            return Graded(asked.expected, asked.task, ungraded=failed)
        if answer.no_tool_calls is not None:
            return Graded(asked.expected, asked.task, answer.text, ungraded=answer.no_tool_calls)
        text, reasoning = answer.choices[0] if answer.choices else (answer.text, answer.reasoning)
        pending = Pending(text, reasoning, answer.finish, answer.usage, answer.tool_calls)
        return self.graded(entry, turn, asked.expected, asked.task, pending)

    def graded(self, entry: int, turn: int, expected: str, task: str | None, pending: Pending) -> Graded:
        """The grade of an answer; of a slow grader, the answer that waits for it."""
        assert self._ref is not None
        response, calls_of = pending.text or pending.reasoning, pending.tool_calls
        if self._grader is None:
            return Graded(expected, task, response, ungraded=NOT_YET, pending=pending, tool_calls=calls_of)
        if self._ref.key in calls.left:
            return Graded(expected, task, response, ungraded="the grader was left behind")
        try:
            with calls.of(self._ref):
                if self._takes_case:
                    grade = checked(self._grader.grade(case_of(self._store, entry, turn, pending)))
                else:
                    grade = checked(self._grader.grade(expected, response))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
            self._report(str(self._ref), failure(self._ref, "failed", error).message)
            failed = f"the grader failed: {why(error)}"
            return Graded(expected, task, response, ungraded=failed, tool_calls=calls_of)
        return Graded(expected, task, response, grade, tool_calls=calls_of)


def case_of(store: Store, entry: int, number: int, answer: Pending) -> Case:
    conversation = store.conversation(entry)
    turn = conversation.turns[number]
    return Case(
        expected=turn.expected or "", task=turn.task, repeat=turn.repeat, turn=turn, conversation_id=conversation.id,
        number=number, text=answer.text, reasoning=answer.reasoning, finish_reason=answer.finish_reason, usage=answer.usage,
        tool_calls=answer.tool_calls,
    )  # fmt: skip


def grade_columns(grades: Mapping[int, Graded], count: int) -> dict[str, Column]:
    """The columns of :data:`GRADE_COLUMNS` for *count* requests.  *grades*: by row, where there is something to grade."""
    columns = {name: np.full(count, np.nan) for name in GRADE_COLUMNS}
    for row, graded in grades.items():
        grade = graded.grade
        columns["graded"][row] = grade is not None
        if grade is not None:
            columns["correct"][row], columns["unparsed"][row] = grade.correct, grade.unparsed
            columns["score"][row] = grade.correct if grade.score is None else grade.score
    return dict(columns)


def waiting(grades: Mapping[int, Graded]) -> int:
    """How many answers wait for a slow grader."""
    return sum(grade.pending is not None for grade in grades.values())
