"""Estimates of histograms within hard bounds."""

from __future__ import annotations

import bisect
import math
import random

import pytest
from aiperf_histograms import of_histogram

EDGES = (0.01, 0.02, 0.04, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5)


def estimated(values: list[float]) -> dict[str, float]:
    counts = [bisect.bisect_right(sorted(values), edge) for edge in EDGES]
    return of_histogram(EDGES, [*counts, len(values)], sum(values))


def test_estimates_are_near_the_truth_and_within_their_bounds() -> None:
    draw = random.Random(7)
    values = sorted(draw.lognormvariate(-2.2, 0.7) for _ in range(20_000))
    found = estimated(values)
    for percent in (50, 90, 95, 99):
        true = values[len(values) * percent // 100]
        assert found[f"p{percent}_estimate"] == pytest.approx(true, rel=0.06)
        assert found[f"p{percent}_low"] <= true <= found[f"p{percent}_high"]


def test_the_sum_moves_the_estimate_within_its_bucket() -> None:
    low, even, high = (of_histogram((1.0, 3.0), (0, 10, 10), total)["p50_estimate"] for total in (11.0, 20.0, 29.0))
    assert 1 < low < 1.2 and even == pytest.approx(2) and 2.8 < high < 3


def test_observations_at_the_edge_of_their_bucket_are_estimated_there() -> None:
    assert of_histogram((1.0, 3.0), (0, 10, 10), 30.0)["p50_estimate"] == pytest.approx(3.0, abs=0.01)
    assert of_histogram((1.0,), (10, 10), 0.0)["p50_estimate"] == pytest.approx(0.0, abs=0.01)


def test_beyond_the_last_bound_there_is_an_estimate_but_no_high_bound() -> None:
    draw = random.Random(7)
    values = sorted(draw.expovariate(0.2) for _ in range(20_000))
    found = estimated(values)
    assert found["p99_estimate"] == pytest.approx(values[19_800], rel=0.1)
    assert found["p99_low"] == 2.5 and "p99_high" not in found


def test_a_histogram_without_observations_has_no_estimate() -> None:
    assert of_histogram((1.0,), (0, 0), 0.0) == {} == of_histogram((), (3,), 1.0)


def test_bounds_below_zero_and_damaged_sums_give_finite_numbers() -> None:
    for total in (-1e9, 0.0, 1e9):
        for found in (of_histogram((-2.0, 0.0, 5.0), (1, 4, 9, 9), total), of_histogram((1.0,), (2, 5), total)):
            assert all(map(math.isfinite, found.values()))


def test_an_estimate_at_the_end_of_a_steep_bucket_is_its_bound() -> None:
    found = of_histogram((1.0, 2.0, 10.0), (100, 100, 101), 0.5)
    assert found["p99_estimate"] <= 1.0 and all(map(math.isfinite, found.values()))
