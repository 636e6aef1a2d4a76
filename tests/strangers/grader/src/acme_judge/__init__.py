"""Right is whose words have one that begins as the answer does."""

from __future__ import annotations

import os
import time

from aiperf import Case, Column, Grade, Grader, Metric, RecordBatch, Unit


class Judge(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        found = next((word for word in response.split() if word[:1].casefold() == expected[:1].casefold()), None)
        return Grade(correct=found is not None, extracted=found)


class Jury(Grader):
    """Sleeps on every answer, and wants whole ones."""

    def grade(self, case: Case) -> Grade:
        time.sleep(0.01)
        grade = Judge().grade(case.expected, case.response)
        told = f"process {os.getpid()}, {case.conversation_id}, {case.finish_reason}, {len(case.turn.texts)} text"
        return Grade(correct=grade.correct and case.number == 0, extracted=grade.extracted, explanation=told)


class Wisdom(Metric):
    tag, title, unit, order = "wisdom", "Wisdom", Unit.RATIO, 960

    def column(self, batch: RecordBatch) -> Column:
        return batch["correct"]
