"""The answer chooses the expected letter, A to D, behind its reasoning."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.extractive import native_letter


class LightevalGpqa(Grader):
    """Extractive matching of a letter (:func:`aiperf_grading.extractive.native_letter`); an answer without one is unparsed."""

    def grade(self, case: Case) -> Grade:
        gold, found = case.expected.strip(), native_letter(case.response)
        if found is None:
            return Grade(correct=False, unparsed=True, explanation="the answer has no letter from A to D")
        if gold not in ("A", "B", "C", "D"):
            return Grade(correct=False, extracted=found, explanation="the expected answer is no letter from A to D")
        return Grade(correct=gold == found, extracted=found, explanation="the letter was compared")
