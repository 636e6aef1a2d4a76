"""The grader multiple_choice."""

from __future__ import annotations

import resource

import pytest
from aiperf_grader_multiple_choice.contract import MultipleChoiceContract
from aiperf_grader_multiple_choice.grader import MultipleChoice
from aiperf_grading.cases import reasoned


class TestItKeepsTheContract(MultipleChoiceContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(MultipleChoiceContract.cases) >= 40


@pytest.mark.timing
def test_ten_thousand_answers_take_less_than_a_second_of_cpu() -> None:
    grader = MultipleChoice()
    texts = ["The capital is not Paris.\n" * 4 + f"The answer is ({letter})." for letter in "ABCD"] + ["B. Rome", "so, C"]
    cases = [reasoned("B", "", text) for text in texts]

    def used_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    before = used_s()
    for number in range(10_000):
        grader.grade(cases[number % len(cases)])
    took = used_s() - before
    assert took < 1.0
