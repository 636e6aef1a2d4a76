"""The answer's formula equals the one in the expected solution."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.extractive import candidates, gold_candidates
from aiperf_grading.judging import Judgement


class LightevalLatex(Grader):
    """Extractive matching.  The expected text may be a worked solution: its last box counts, else its last formula.

    Of the answer the last box counts, else what a phrase such as ``the answer is`` names, else the last formula or number.
    """

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._judgement = Judgement()

    def grade(self, case: Case) -> Grade:
        found = candidates(case.response)
        if not found:
            return Grade(correct=False, unparsed=True, explanation="the answer has no formula and no number")
        same, said = self._judgement.equal(gold_candidates(case.expected, latex=True), found)
        return Grade(correct=same is not None, extracted=found[0] if same is None else same, explanation=said)
