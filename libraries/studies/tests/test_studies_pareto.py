"""Best points, beside a plain comparison of all with all."""

from __future__ import annotations

import math
import random
import time

import pytest
from aiperf_studies.pareto import best, pareto


def plain(points: list[tuple[float, ...]], maximize: list[bool]) -> list[int]:
    signed = [tuple(-value if up else value for value, up in zip(point, maximize, strict=True)) for point in points]

    def dominated(one: tuple[float, ...]) -> bool:
        return any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in signed)

    return [index for index, point in enumerate(signed) if not dominated(point)]


@pytest.mark.parametrize("maximize", [[True], [True, False], [False, False], [True, False, True], [False] * 4])
def test_no_point_is_better_than_a_pareto_point(maximize: list[bool]) -> None:
    draws = random.Random(len(maximize))
    for count in range(30):
        points = [tuple(float(draws.randrange(6)) for _ in maximize) for _ in range(count)]
        assert pareto(points, maximize) == plain(points, maximize)


def test_points_with_an_unknown_coordinate_are_left_out() -> None:
    assert pareto([(1.0, None), (2.0, 5.0), (math.nan, 1.0), (1.0, math.inf)], [True, False]) == [1]
    assert pareto([], [True, False]) == []


def test_many_points_take_a_moment() -> None:
    points = [(float(number), float(number)) for number in range(20_000)]  # all of them: the worst case
    begin = time.process_time()
    assert len(pareto(points, [True, False])) == len(points)
    assert time.process_time() - begin < 60  # all with all would take many minutes


def test_the_best_is_the_first_of_equals() -> None:
    values = [None, 2.0, math.nan, 3.0, 3.0, 1.0]
    assert (best(values, maximize=True), best(values, maximize=False), best([None], maximize=True)) == (3, 5, None)
