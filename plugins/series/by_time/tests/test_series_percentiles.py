"""Percentiles of gauges by time."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf_histograms import PERCENTILES
from aiperf_series_by_time.percentiles import by_time


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
