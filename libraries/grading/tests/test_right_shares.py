"""Intervals of shares, and answers that are repeated."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from aiperf_grading.rates import majority, pass_at, wilson


@pytest.mark.parametrize("answers", range(1, 9))
def test_pass_at_k_is_the_share_of_all_choices(answers: int) -> None:
    for right in range(answers + 1):
        grades = [number < right for number in range(answers)]
        for k in range(1, answers + 1):
            chosen = [any(choice) for choice in combinations(grades, k)]
            assert pass_at(k, right, answers) == pytest.approx(sum(chosen) / len(chosen))


def test_pass_at_k_needs_k_answers() -> None:
    assert pass_at(3, 1, 2) is None and pass_at(0, 0, 2) is None


@pytest.mark.parametrize("share", [0.05, 0.5, 0.7, 0.98])
def test_most_intervals_hold_the_share(share: float) -> None:
    held = 0
    for seed in range(200):
        draw = random.Random(seed)
        low, high = wilson(sum(draw.random() < share for _ in range(200)), 200)
        held += low <= share <= high
    assert held >= 180


def test_intervals_have_their_known_values() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4) and wilson(20, 20)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(50, 100, 0.99)[0] < wilson(50, 100)[0]


@pytest.mark.parametrize(("right", "total", "level"), [(2, 1, 0.95), (-1, 1, 0.95), (1, 2, 0.0), (1, 2, 1.0)])
def test_what_is_no_share_is_refused(right: int, total: int, level: float) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(right, total, level)


def test_the_majority_is_the_most_frequent_answer() -> None:
    assert majority(["a", "b", None, "b"]) == "b"
    assert majority(["b", "a", "a", "b"]) == "b"
    assert majority([None, ""]) is None
