"""The grader exact_match."""

from __future__ import annotations

from aiperf_grader_exact_match.contract import ExactMatchContract


class TestItKeepsTheContract(ExactMatchContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(ExactMatchContract.cases) >= 40
