"""Rates that change over time: every pattern keeps its shape, and the load is what the curve says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.ramp import Ramp
from aiperf.sdk.schedule import ScheduleContext
from aiperf_schedule_standard import arrivals
from aiperf_schedule_standard.ramps import RateCurve, exponential, linear, ramped_rate
from aiperf_schedule_standard.request_rate import RequestRate
from hypothesis import given, settings
from hypothesis import strategies as st

GAPS = {"constant": arrivals.constant_gaps, "poisson": arrivals.poisson_gaps, "gamma": arrivals.gamma_gaps}
S = 10**9
SHAPES = [("constant", 1.0, 0.0), ("poisson", 1.0, 1.0), ("gamma", 4.0, 0.5), ("gamma", 0.25, 2.0)]

rises = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)
levels = st.floats(0, 1000).map(lambda rate: 0.0 if rate < 0.01 else rate)


def rated(pattern: str = "poisson", seed: int = 7, ramp: Ramp | None = None, **changes: Any) -> RequestRate:
    fields: dict[str, Any] = {"name": "profiling", "kind": "profiling", "index": 0, "schedule": "request_rate", **changes}
    return RequestRate(ScheduleContext(seed, PhasePlan(**fields), GAPS[pattern], ramp))


def integral(at_s: list[float], rates: list[float]) -> Callable[[float], float]:
    """The expected arrivals by a time, by hand."""

    def until(now: float) -> float:
        total = rates[0] * min(now, at_s[0])
        for (t0, r0), (t1, r1) in pairwise(zip(at_s, rates, strict=True)):
            if now > t0:
                end = min(now, t1)
                total += (r0 + r0 + (r1 - r0) * (end - t0) / (t1 - t0)) / 2 * (end - t0)
        return total + rates[-1] * max(0.0, now - at_s[-1])

    return until


@settings(max_examples=200, deadline=None)
@given(st.data(), rises)
def test_the_inverse_undoes_the_integral(data: st.DataObject, widths: list[float]) -> None:
    at_s = np.cumsum(widths).tolist()
    rates = data.draw(st.lists(levels, min_size=len(at_s), max_size=len(at_s)))
    expected = integral(at_s, rates)
    times = sorted(data.draw(st.lists(st.floats(0, 2 * at_s[-1]), min_size=1, max_size=20)))
    # A rounding error less, so that no number lies behind a pause that the time is in.
    arrivals = np.array([expected(time) for time in times]) * (1 - 1e-12)
    due_ns = RateCurve(at_s, rates).due_ns(arrivals)
    for time, wanted, found in zip(times, arrivals, due_ns, strict=False):
        assert found / 1e9 <= time * (1 + 1e-6) + 1e-6, "the first time by which so many are expected"
        assert expected(found / 1e9) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert (np.diff(due_ns) >= -1e-3).all()


@pytest.mark.parametrize(("points", "arrivals", "due_s"), [
    ([(0, 2)], [1, 2, 3], [0.5, 1, 1.5]),
    ([(5, 2)], [1, 10, 11], [0.5, 5, 5.5]),  # the first rate holds before its time, too
    ([(0, 0), (10, 10)], [5, 12.5, 50, 60], [10**0.5, 5, 10, 11]),
    ([(0, 10), (10, 0)], [37.5, 50, 51], [5, 10]),  # it ends at 0: the rest never comes
    ([(0, 1), (10, 1), (10.5, 0), (20, 0), (20.5, 1)], [10, 10.25, 10.5, 11.5], [10, 10.5, 20.5, 21.5]),
    ([(0, 0), (1, 0)], [0, 1], [0]),
])  # fmt: skip
def test_a_curve_by_hand(points: list[tuple[float, float]], arrivals: list[float], due_s: list[float]) -> None:
    found = RateCurve(*zip(*points, strict=True)).due_ns(np.array(arrivals, dtype=np.float64))
    assert found / 1e9 == pytest.approx(np.array(due_s))


@given(st.integers(1, 10**9), st.floats(0.01, 1e5))
def test_constant_arrivals_under_a_constant_rate_are_exact(n: int, rate: float) -> None:
    from fractions import Fraction

    found = RateCurve([0.0], [rate]).due_ns(np.array([float(n)]))[0]
    exact = Fraction(n) * S / Fraction(rate)
    assert abs(Fraction(float(found)) - exact) <= max(Fraction(1, 1000), exact / 2**51)


# Ramps: acceptance check 6


@pytest.mark.parametrize(("pattern", "smoothness", "cv"), SHAPES)
def test_a_ramp_to_two_per_second_has_twenty_requests_on_average(
    pattern: str, smoothness: float, cv: float
) -> None:
    """A process that begins with a whole gap has (cv² - 1) / 2 more than rate times time: none under poisson."""
    load: dict[str, Any] = {"rate": 2.0, "rate_ramp_ns": 20 * S, "smoothness": smoothness}
    counts = [np.searchsorted(rated(pattern, seed, **load).due_block(0, 300), 20 * S) for seed in range(300 if cv else 1)]
    assert np.mean(counts) == pytest.approx(20 + (cv * cv - 1) / 2, abs=max(0.6, 1.3 * cv - 0.6))


def test_the_constant_pattern_under_a_ramp_by_hand() -> None:
    """Rate 0.01 + 0.0995 t: its integral reaches n at the root of a square."""
    due = rated("constant", rate=2.0, rate_ramp_ns=20 * S).due_block(0, 30)
    slope = (2 - 0.01) / 20
    reached = [(-0.01 + (0.01**2 + 2 * slope * n) ** 0.5) / slope for n in range(1, 21)]
    assert due[:20] / S == pytest.approx(np.array(reached), rel=1e-9)
    assert np.diff(due[20:]) == pytest.approx(S / 2, abs=1)


@pytest.mark.parametrize("curve", [linear, exponential])
def test_behind_the_ramp_the_rate_is_the_target(curve: Ramp) -> None:
    due = rated("constant", ramp=curve, rate=100.0, rate_ramp_ns=3 * S).due_block(0, 1000)
    assert set(np.diff(due[due > 3 * S]).tolist()) <= {9_999_999, 10_000_000, 10_000_001}
    assert np.diff(due).min() >= 9_999_999, "never above the target"


@pytest.mark.parametrize(("curve", "mean"), [(linear, 1 / 2), (exponential, 1 / 3)])
def test_the_load_under_a_ramp_is_the_area_under_its_curve(curve: Ramp, mean: float) -> None:
    rate, ramp_s = 500.0, 10.0
    begin = rate * 0.1 / ramp_s
    due = ramped_rate(curve, round(ramp_s * S), rate).due_ns(np.arange(1.0, 5000))
    assert np.searchsorted(due, ramp_s * S) == pytest.approx(ramp_s * (begin + (rate - begin) * mean), abs=1)


def test_a_ramp_shorter_than_a_step_never_starts_above_the_target() -> None:
    assert rated("constant", rate=2.0, rate_ramp_ns=S // 20).due_block(0, 3).tolist() == [S // 2, S, 3 * S // 2]


# Patterns


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**64 - 1), st.sampled_from(SHAPES), st.floats(0.5, 5000))
def test_the_gaps_mean_and_variation_are_the_patterns_whatever_the_seed(
    seed: int, shape: tuple[str, float, float], rate: float
) -> None:
    """Five standard deviations of what 20,000 gaps may be off by; acceptance check 3 is of one seed, below."""
    pattern, smoothness, cv = shape
    gaps = np.diff(rated(pattern, seed, rate=rate, smoothness=smoothness).due_block(0, 20_000), prepend=0) / S
    assert gaps.mean() * rate == pytest.approx(1, abs=5 * cv / 20_000**0.5 + 1e-6)
    assert gaps.std() * rate == pytest.approx(cv, rel=0.2, abs=1e-5)


@pytest.mark.parametrize(("pattern", "smoothness", "cv"), SHAPES)
@pytest.mark.parametrize("ramp_ns", [None, 20 * S])
def test_five_thousand_gaps_have_the_mean_and_variation_of_acceptance_check_3(
    pattern: str, smoothness: float, cv: float, ramp_ns: int | None
) -> None:
    """Under a ramp, too: in operational time, which the curve's integral tells.  Of sixteen seeds together, as a single one of
    gamma 0.25 is off by 3 % every third time."""
    rate = 50.0
    expected = (lambda at: at * rate) if ramp_ns is None else integral([0, 20], [rate * 0.1 / 20, rate])
    load: dict[str, Any] = {"rate": rate, "smoothness": smoothness, "rate_ramp_ns": ramp_ns}
    drawn = [rated(pattern, seed, **load).due_block(0, 5000) / S for seed in range(16)]
    gaps = np.concatenate([np.diff([expected(at) for at in due], prepend=0) for due in drawn])
    assert gaps.mean() == pytest.approx(1, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05, abs=1e-5)


LOADS = [
    {"rate": 20.0},
    {"rate": 20.0, "rate_ramp_ns": 30 * S},
    {"rate_series": ((1.0, 0.0), (9.0, 70.0), (12.0, 1.0))},
]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**64 - 1), st.sampled_from(sorted(GAPS)), st.integers(0, 9000), st.integers(0, 5000),
    st.sampled_from([1, 2, 5]), st.sampled_from(LOADS),
)  # fmt: skip
def test_due_times_are_equal_for_any_shards_and_blocks(
    seed: int, pattern: str, first: int, count: int, shards: int, load: dict[str, Any]
) -> None:
    whole = rated(pattern, seed, **load).due_block(0, first + count)
    assert (np.diff(whole) >= 0).all()
    assert rated(pattern, seed, **load).due_block(first, count).tolist() == whole[first:].tolist()
    pieces = rated(pattern, seed, **load)
    split = count // shards
    asked = [pieces.due_block(first + k * split, split).tolist() for k in reversed(range(shards))]
    assert [time for piece in reversed(asked) for time in piece] == whole[first : first + shards * split].tolist()


@given(st.integers(0, 2**64 - 1), st.sampled_from(["poisson", "gamma"]))
def test_two_seeds_differ_and_one_repeats(seed: int, pattern: str) -> None:
    one, again, other = (rated(pattern, s, rate=20.0).due_block(0, 20).tolist() for s in (seed, seed, seed ^ 1))
    assert one == again
    assert one != other


# A rate that changes


def test_a_series_follows_its_points_and_keeps_the_last_rate() -> None:
    due = rated("constant", rate_series=((0.0, 10.0), (10.0, 30.0))).due_block(0, 300)
    assert np.searchsorted(due, [5 * S, 10 * S, 12 * S], side="right").tolist() == [75, 200, 260]


def test_a_series_that_ends_at_nothing_ends_the_schedule() -> None:
    due = rated("constant", rate_series=((0.0, 10.0), (2.0, 0.0)))
    assert len(due.due_block(0, 100)) == 10
    assert len(due.due_block(10, 100)) == 0
