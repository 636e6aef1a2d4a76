"""Right is whose words have one that begins as the answer does."""

from __future__ import annotations

from aiperf import Column, Grade, Grader, Metric, RecordBatch, Unit


class Judge(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        found = next((word for word in response.split() if word[:1].casefold() == expected[:1].casefold()), None)
        return Grade(correct=found is not None, extracted=found)


class Wisdom(Metric):
    tag, title, unit, order = "wisdom", "Wisdom", Unit.RATIO, 960

    def column(self, batch: RecordBatch) -> Column:
        return batch["correct"]
