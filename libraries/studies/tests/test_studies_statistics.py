"""Quantiles, intervals and the test of two samples, beside scipy's."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from aiperf_studies.confidence import confidence
from aiperf_studies.kolmogorov import ks_distance, ks_p_value
from aiperf_studies.student import student_quantile
from scipy import stats

LEVELS = (0.001, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.995, 0.9999)


@pytest.mark.parametrize("degrees", [*range(1, 31), 100, 999, 1000, 1001, 5000, 10**6])
def test_quantiles_of_t_are_those_of_scipy(degrees: int) -> None:
    for level in LEVELS:
        for probability in ((1 + level) / 2, (1 - level) / 2):
            expected = float(stats.t.ppf(probability, degrees))
            assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert student_quantile(0.5, degrees) == 0.0


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_a_quantile_out_of_range_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(probability, degrees)


def test_an_interval_is_that_of_scipy() -> None:
    draws = random.Random(1)
    for count in range(2, 11):
        values = [draws.gauss(-5, 2) for _ in range(count)]
        row = confidence(values, 0.9, "ms")
        se = stats.sem(values)
        low, high = stats.t.interval(0.9, count - 1, np.mean(values), se)
        assert (row.ci_low, row.ci_high, row.se) == pytest.approx((low, high, se), rel=1e-9)
        assert (row.mean, row.std) == pytest.approx((np.mean(values), np.std(values, ddof=1)), rel=1e-12)
        assert row.cv == pytest.approx(np.std(values, ddof=1) / abs(np.mean(values)), rel=1e-12)  # of |mean|: positive
        assert row.width == pytest.approx((high - low) / abs(np.mean(values)), rel=1e-9)
        assert (row.min, row.max, row.unit) == (min(values), max(values), "ms")
        assert confidence(values[::-1], 0.9, "ms") == row


def test_one_value_has_no_spread() -> None:
    row = confidence([3.5], 0.95)
    assert (row.mean, row.std, row.se, row.cv, row.ci_low, row.ci_high, row.t_critical) == (3.5, 0, 0, 0, 3.5, 3.5, None)


def test_no_value_is_refused() -> None:
    with pytest.raises(ValueError, match="no run succeeded"):
        confidence([], 0.95)


def test_a_mean_of_zero_has_an_infinite_share() -> None:
    row = confidence([-1.0, 1.0], 0.95)
    assert math.isinf(row.cv) and math.isinf(row.width)
    assert math.isinf(confidence([0.0, 0.0], 0.95).cv)


def test_equal_values_have_exactly_no_spread() -> None:
    row = confidence([0.1] * 3, 0.95)
    assert (row.mean, row.std, row.ci_low, row.ci_high) == (0.1, 0.0, 0.1, 0.1)


@pytest.mark.parametrize(
    ("first", "second", "shift"), [(5, 7, 0.0), (10, 10, 0.5), (20, 33, 0.3), (200, 400, 0.1), (3, 900, 0.0)]
)
def test_small_samples_have_the_exact_p_value(first: int, second: int, shift: float) -> None:
    draws = np.random.default_rng(first)
    a, b = draws.normal(size=first), draws.normal(shift, size=second)
    expected = stats.ks_2samp(a, b, method="exact")
    assert ks_distance(a, b) == pytest.approx(expected.statistic)
    assert ks_p_value(a, b) == pytest.approx(expected.pvalue, abs=1e-9)
    rounded = np.round(a, 1), np.round(b, 1)  # equal values in both
    assert ks_p_value(*rounded) == pytest.approx(stats.ks_2samp(*rounded, method="exact").pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "shift"), [(2000, 5000, 0.0), (1500, 1500, 0.05), (500, 5000, 0.0), (4000, 30, 2.0)]
)
def test_large_samples_have_nearly_the_p_value(first: int, second: int, shift: float) -> None:
    draws = np.random.default_rng(second)
    a, b = draws.normal(size=first), draws.normal(shift, size=second)
    assert ks_p_value(a, b) == pytest.approx(stats.ks_2samp(a, b).pvalue, abs=0.01)


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        ks_p_value([], [1.0])
