"""The grader lighteval_gpqa."""

from __future__ import annotations

from aiperf_grader_lighteval_gpqa.contract import LightevalGpqaContract


class TestItKeepsTheContract(LightevalGpqaContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(LightevalGpqaContract.cases) >= 40
