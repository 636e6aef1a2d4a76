"""The final answer equals the expected one as mathematics."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.extraction import final_answer
from aiperf_grading.judging import Judgement


class Math(Grader):
    r"""Compares the last ``\\boxed{…}``; without one a phrase's tail, the last number or the whole answer, which are
    unparsed.
    """

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._judgement = Judgement()

    def grade(self, case: Case) -> Grade:
        found = final_answer(case.response)
        if not found.text:
            return Grade(correct=False, unparsed=not found.clean, extracted="", explanation="the answer is empty")
        same, said = self._judgement.equal([case.expected], [found.text])
        return Grade(correct=same is not None, unparsed=not found.clean, extracted=found.text, explanation=said)
