"""The grader lighteval_gsm8k."""

from __future__ import annotations

from aiperf_grader_lighteval_gsm8k.contract import LightevalGsm8kContract


class TestItKeepsTheContract(LightevalGsm8kContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(LightevalGsm8kContract.cases) >= 40
