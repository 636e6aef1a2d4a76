"""Percentiles of gauges by time, and estimates of histograms within hard bounds."""

from __future__ import annotations

import bisect
import math
import random

import numpy as np
import pytest
from aiperf_series_by_time.percentiles import PERCENTILES, by_time, of_histogram

EDGES = (0.01, 0.02, 0.04, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5)


def by_value(*gauges: dict[float, int]) -> list[dict[str, float]]:
    """The percentiles of gauges, from the time at each value."""
    rows = [(owner, value, time) for owner, gauge in enumerate(gauges) for value, time in sorted(gauge.items())]
    owners, values, times = np.array(rows).T
    found = by_time(owners.astype(int), values, times.astype(int), len(gauges))
    return [dict(zip((f"p{percent}" for percent in PERCENTILES), column, strict=True)) for column in found.T.tolist()]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({4.0: 9, 14.0: 1}, {"p50": 4, "p75": 4, "p90": 9, "p95": 14}),
        ({0.0: 5, 10.0: 5}, {"p25": 0, "p50": 5, "p99": 10}),
        ({7.0: 1}, {"p1": 7, "p99": 7}),
        ({float(n): 1 for n in range(1, 101)}, {"p1": 1.5, "p50": 50.5, "p99": 99.5}),
    ],
)
def test_a_percentile_is_the_value_that_holds_for_the_share_of_time(
    times: dict[float, int], expected: dict[str, float]
) -> None:
    (found,) = by_value(times)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_gauges_side_by_side_have_percentiles_of_their_own() -> None:
    low, high = by_value({0.0: 5, 10.0: 5}, {3.0: 1, 4.0: 3})
    assert (low["p50"], low["p99"], high["p25"], high["p50"]) == (5, 10, 3.5, 4)


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
