"""Failures as infinitely slow, and requests cut off in flight as lasting at least as long as they had."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.sdk.summary import Result, survivors
from aiperf_reducer_columns.statistics.described import PERCENTILES, adjusted, statistics
from aiperf_reducer_columns.statistics.totals import kaplan_meier
from aiperf_testing.summaries import sample_summary
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.lists(st.integers(0, 10**9).map(float), min_size=1, max_size=50)


def array(values: Any) -> Any:
    return np.sort(np.array(values, dtype=np.float64))


def test_failures_push_percentiles_up_until_they_are_infinite_and_left_out() -> None:
    """Ten values and two failures: rank of p50 is 5.5, to even 6; of p75 8.25, 8; of p90 9.9, 10, which is a failure."""
    assert adjusted(range(10, 110, 10).__getitem__, 10, 2, 1.0) == {
        "min": 10, "p1": 10, "p5": 20, "p10": 20, "p25": 40, "p50": 70, "p75": 90, "count": 12,
    }  # fmt: skip


def test_where_everything_failed_only_the_count_is_known() -> None:
    assert adjusted([].__getitem__, 0, 3, 1.0) == {"count": 3}


def test_the_product_limit_is_the_one_worked_out_by_hand() -> None:
    """Ends at 1, 2, 4 and 5, cut off at 3: S = 4/5, 3/5, 3/10, 0, so that the ends have the ranks 0, 1, 2.5 and 4 of 0 to 4."""
    found = kaplan_meier(array([1, 2, 4, 5]), array([3]), 1.0)
    assert found["p25"] == pytest.approx(2)
    assert found["p50"] == pytest.approx(2 + 2 * (1 / 1.5))
    assert found["p75"] == pytest.approx(4 + 0.5 / 1.5)
    assert (found["count"], found["censored"]) == (5, 1)


def test_a_percentile_that_is_asked_for_is_interpolated_between_the_steps() -> None:
    assert kaplan_meier(array([1, 2, 4, 5]), array([3]), 1.0, (62.5,)) == {"p62.5": 4.0, "count": 5, "censored": 1}


def test_beyond_the_last_end_that_was_seen_nothing_is_known() -> None:
    found = kaplan_meier(array([1, 2, 3]), array([9, 9]), 1.0)
    assert {name for name in found if name.startswith("p")} == {"p1", "p5", "p10", "p25", "p50"}
    assert found["p50"] == pytest.approx(3)


def test_with_no_end_seen_there_is_only_the_count() -> None:
    assert kaplan_meier(array([]), array([5, 6]), 1.0) == {"count": 2, "censored": 2}


def test_an_end_at_the_instant_of_a_cut_off_came_before_it() -> None:
    assert kaplan_meier(array([1, 2]), array([2]), 1.0)["p50"] == pytest.approx(2)


@given(TIMES)
def test_with_nothing_cut_off_the_percentiles_are_the_plain_ones(times: list[float]) -> None:
    found, plain = kaplan_meier(array(times), array([]), 1.0), statistics(array(times))
    for q in PERCENTILES:
        assert found[f"p{q}"] == pytest.approx(plain[f"p{q}"], abs=1e-3)


@given(TIMES, TIMES)
def test_what_was_cut_off_never_makes_a_percentile_smaller(seen: list[float], censored: list[float]) -> None:
    later = array(seen).max() + array(censored)
    found, plain = kaplan_meier(array(seen), later, 1.0), statistics(array(seen))
    for q in PERCENTILES:
        assert found.get(f"p{q}", np.inf) >= plain[f"p{q}"] * (1 - 1e-9)


def test_a_summary_says_which_latencies_survivors_flatter() -> None:
    plain = {"avg": 10.0, "p50": 10.0, "p99": 20.0, "count": 9}

    def differing(**other: float) -> list[str]:
        survival = {"latency": Result("latency", "", "ms", {"count": 10, "censored": 1, **other})}
        results = {"latency": Result("latency", "", "ms", plain)}
        return [found.tag for found in survivors(msgspec.structs.replace(sample_summary(), results=results, survival=survival))]

    assert differing(p50=10.05, p99=20.1) == []
    assert differing(p50=10.05, p99=20.3) == ["latency"]
    assert differing(p50=10.05) == ["latency"]
