"""The answer chooses the expected letter, A to D."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.choices import choice


class MultipleChoice(Grader):
    """Compares the letter of the answer with the expected one; both without spaces around them.

    A letter that the answer does not plainly give, and an answer without one, are unparsed.
    """

    def unfit(self, expected: str) -> str | None:
        text = expected.strip()
        return None if text and "\n" not in text else "it is no letter, and no line"

    def grade(self, case: Case) -> Grade:
        found = choice(case.response)
        correct = bool(found.letter) and found.letter == case.expected.strip()
        said = "the answer plainly gives its letter" if found.clean else "the letter was looked for in the answer"
        return Grade(correct=correct, unparsed=not found.clean, extracted=found.letter, explanation=said)
