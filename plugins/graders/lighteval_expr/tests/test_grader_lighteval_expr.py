"""The grader lighteval_expr."""

from __future__ import annotations

from aiperf_grader_lighteval_expr.contract import LightevalExprContract


class TestItKeepsTheContract(LightevalExprContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(LightevalExprContract.cases) >= 40
