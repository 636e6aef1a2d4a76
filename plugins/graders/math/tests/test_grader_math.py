"""The grader math."""

from __future__ import annotations

import subprocess
import sys

import pytest
from aiperf_grader_math.contract import MathContract

PAIRS = r"""
import random, resource
from aiperf_grader_math.grader import Math
from aiperf_grading.cases import reasoned

draw = random.Random(1)
grader = Math()
right = 0
for _ in range(2_000):
    a, b = draw.randint(1, 99), draw.randint(2, 99)
    gold = draw.choice([f"{a}", rf"\frac{{{a}}}{{{b}}}", f"x^2+{a}x+{b}", rf"{a}\sqrt{{{b}}}", f"({a},{b})"])
    answer = draw.choice([gold, f"{a}/{b}", f"{b}+x({a}+x)", f"{a}", rf"\sqrt{{{b * a * a}}}"])
    text = "We add 3 and 4.\n" * 20 + rf"So \boxed{{{answer}}}"
    right += grader.grade(reasoned(gold, "", text)).correct
used = resource.getrusage(resource.RUSAGE_SELF)
print(right, used.ru_utime + used.ru_stime)
"""


class TestItKeepsTheContract(MathContract):
    pass


def test_it_has_forty_cases_by_hand() -> None:
    assert len(MathContract.cases) >= 40


@pytest.mark.timing
def test_two_thousand_pairs_take_less_than_ten_seconds_of_cpu() -> None:
    done = subprocess.run([sys.executable, "-c", PAIRS], capture_output=True, text=True, check=True, timeout=600)
    right, took_s = done.stdout.split()
    assert 600 < int(right) < 1_400 and float(took_s) < 10.0
