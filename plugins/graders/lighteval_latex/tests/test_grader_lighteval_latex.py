"""The grader lighteval_latex."""

from __future__ import annotations

from aiperf_grader_lighteval_latex.contract import LightevalLatexContract


class TestItKeepsTheContract(LightevalLatexContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(LightevalLatexContract.cases) >= 40
