"""The grader mmlu_pro."""

from __future__ import annotations

from aiperf_grader_mmlu_pro.contract import MmluProContract


class TestItKeepsTheContract(MmluProContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(MmluProContract.cases) >= 40
