"""The answer's formula equals the one in the expected solution."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.judging import Judgement


class LightevalLatex(Grader):
    """Extractive matching.  The expected text may be a worked solution: its last box counts, else its last formula.

    Of the answer the last box counts, else what a phrase such as ``the answer is`` names, else the last formula or number.
    """

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._judgement = Judgement()

    def grade(self, case: Case) -> Grade:
        return self._judgement.matched(case, latex=True)
