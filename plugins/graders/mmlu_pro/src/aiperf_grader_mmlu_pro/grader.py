"""The answer chooses the expected letter, A to J, behind its reasoning."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.choices import reasoned_choice


class MmluPro(Grader):
    """Compares the letter at the end of a worked answer.  One that the answer doesn't plainly give is unparsed."""

    def unfit(self, expected: str) -> str | None:
        return None if expected.strip() in set("ABCDEFGHIJ") else "it is no letter from A to J"

    def grade(self, case: Case) -> Grade:
        found = reasoned_choice(case.response)
        correct = bool(found.letter) and found.letter == case.expected.strip()
        if not found.letter:
            return Grade(correct=False, unparsed=True, extracted="", explanation="the answer has no letter")
        said = "the answer plainly gives its letter" if found.clean else "the letter was looked for in the answer"
        return Grade(correct=correct, unparsed=not found.clean, extracted=found.letter, explanation=said)
