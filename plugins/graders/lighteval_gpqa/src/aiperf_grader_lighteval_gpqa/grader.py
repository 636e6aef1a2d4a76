"""The answer chooses the expected letter, A to D, behind its reasoning."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.extractive import native_letter


def _letter(expected: str) -> str | None:
    letter = expected.strip().upper()
    return letter if letter in ("A", "B", "C", "D") else None


class LightevalGpqa(Grader):
    """Extractive matching of a letter (:func:`aiperf_grading.extractive.native_letter`); an answer without one is unparsed."""

    def unfit(self, expected: str) -> str | None:
        return None if _letter(expected) else "it is no letter from A to D"

    def grade(self, case: Case) -> Grade:
        gold, found = _letter(case.expected), native_letter(case.response)
        if found is None:
            return Grade(correct=False, unparsed=True, explanation="the answer has no letter from A to D")
        if gold is None:
            said = "the expected answer is no letter from A to D"
            return Grade(correct=False, unparsed=True, extracted=found, explanation=said)
        return Grade(correct=gold == found, extracted=found, explanation="the letter was compared")
