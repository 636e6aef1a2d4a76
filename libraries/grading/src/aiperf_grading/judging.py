"""The judge that a mathematical grader uses: our own core, and math-verify where it is installed."""

from __future__ import annotations

from importlib.metadata import version

from aiperf.sdk.grader import Case, Grade

from aiperf_grading.engine import MathVerify, installed
from aiperf_grading.equality import equal
from aiperf_grading.evaluation import TOLERANCE
from aiperf_grading.extractive import candidates, gold_candidates

_ROUNDED = 0.5e-5
"""How far numbers may be apart that are the same in five decimals."""


class Judgement:
    """Compares texts and notes who found them equal."""

    def __init__(self) -> None:
        self._engine = installed()
        self._asked = MathVerify() if self._engine else None
        self._own = f"aiperf-grading {version('aiperf-grading')}"

    @property
    def judges(self) -> str:
        """Who compares, with versions."""
        return f"{self._own} and {self._engine}" if self._engine else self._own

    def equal(self, gold: list[str], found: list[str], tolerance: float = TOLERANCE) -> tuple[str | None, str]:
        """The first of *found* that equals one of *gold*, None where none does; and who says so.

        tolerance: how far two numbers may be apart.
        """
        for each in found:
            if any(equal(one, each, tolerance=tolerance) for one in gold):
                return each, f"equal by {self._own}"
        if self._asked is not None:
            for each in found:
                if any(equal(one, each, self._asked, tolerance) for one in gold):
                    return each, f"equal by {self._engine}"
        return None, f"unequal by {self.judges}"

    def matched(self, case: Case, *, latex: bool) -> Grade:
        """The grade by extractive matching.  Numbers are equal to five decimals.

        Of the answer the last box counts, else what a phrase such as ``the answer is`` names, else the last formula or number.
        latex: whether the expected text may be a worked solution, and not an expression alone.
        """
        found = candidates(case.response)
        if not found:
            return Grade(correct=False, unparsed=True, explanation="the answer has no formula and no number")
        same, said = self.equal(gold_candidates(case.expected, latex=latex), found, _ROUNDED)
        return Grade(correct=same is not None, extracted=found[0] if same is None else same, explanation=said)


__all__ = ["Judgement"]
