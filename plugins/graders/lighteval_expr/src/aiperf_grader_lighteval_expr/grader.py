"""The answer's formula or number equals the expected expression."""

from __future__ import annotations

from aiperf.sdk.grader import Case, Grade, Grader
from aiperf_grading.judging import Judgement


class LightevalExpr(Grader):
    """Extractive matching.  The expected text is an expression.

    Of the answer the last box counts, else what a phrase such as ``the answer is`` names, else the last formula or number.
    """

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._judgement = Judgement()

    def grade(self, case: Case) -> Grade:
        return self._judgement.matched(case, latex=False)
