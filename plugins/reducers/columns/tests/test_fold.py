"""Values to statistics: exact, by the spec's formulas, for every order and number of reducers."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf_reducer_columns.statistics import fold
from aiperf_reducer_columns.statistics.described import displayed, statistics
from aiperf_reducer_columns.statistics.exact_sum import Sum
from aiperf_reducer_columns.statistics.fold import Buckets, Merged, Samples
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False)
SAMPLES = st.lists(st.one_of(NUMBERS, st.integers(0, 10**10).map(float)), min_size=1, max_size=60)


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def folded(path: Path, values: Any, parts: int = 1, *, listed: bool = False, seed: int = 0) -> Merged:
    """The values as some reducers fold them: shuffled, in batches of any size, through their files."""
    draw = random.Random(seed)
    shuffled = list(values)
    draw.shuffle(shuffled)
    folds = [Samples(path / f"fold-{seed}-{part}", listed=listed) for part in range(parts)]
    while shuffled:
        size = draw.randint(1, max(1, len(shuffled)))
        draw.choice(folds).add(array(shuffled[:size]))
        del shuffled[:size]
    draw.shuffle(folds)
    return Merged([Samples.load(each.dump()) for each in folds])


def test_statistics_are_those_worked_out_by_hand() -> None:
    found = statistics(array([10, 20, 30, 40]))
    assert found == {
        "avg": 25, "min": 10, "max": 40, "sum": 100,
        "p1": 10.3, "p5": 11.5, "p10": 13, "p25": 17.5, "p50": 25, "p75": 32.5, "p90": 37, "p95": 38.5,
        "p99": pytest.approx(39.7), "std": math.sqrt(125), "count": 4,
    }  # fmt: skip


@given(SAMPLES)
def test_a_percentile_that_is_asked_for_is_interpolated_like_the_others(values: list[float]) -> None:
    found = statistics(array(values), percentiles=(50, 99.9))
    assert found["p99.9"] == pytest.approx(np.percentile(array(values), 99.9), rel=1e-9, abs=1e-9)
    assert found["p50"] == statistics(array(values))["p50"] and "p99" not in found


def test_asked_percentiles_are_in_bounds_buckets_and_adjusted_statistics(tmp_path: Path) -> None:
    samples = [Samples(tmp_path / name, listed=True) for name in ("known", "low")]
    for part, first in zip(samples, (1000.0, 0.0), strict=True):
        part.add(array(range(int(first), 2000)))
    low = Merged(samples[1:], percentiles=(99.9,))
    merged = Merged(samples[:1], bounds=(low, low, 0.0), percentiles=(99.9,))
    assert merged.bounds(1.0)[0]["p99.9"] == low.statistics(1.0)["p99.9"] == pytest.approx(1997.001)
    (worse, sides), last = merged.adjusted(1, 1.0), 1999.0
    assert worse["p99.9"] == last and sides[0]["p99.9"] == 1998.0
    buckets = Buckets()
    buckets.add(array(range(1, 2001)))
    assert buckets.statistics(1.0, (99.9,))["p99.9"] == pytest.approx(1998, rel=1e-3)


def test_the_order_of_the_statistics_is_that_of_the_files() -> None:
    from aiperf.sdk.summary import STATISTICS

    assert tuple(statistics(array([1.0]))) == (*STATISTICS, "count")


def test_one_value_is_every_percentile_and_has_no_spread() -> None:
    found = statistics(array([7.25]))
    assert {name: value for name, value in found.items() if value != 7.25} == {"std": 0.0, "count": 1}


def test_scaling_comes_after_the_arithmetic_and_leaves_the_count() -> None:
    base, shown = statistics(array([1e6, 3e6])), statistics(array([1e6, 3e6]), 1e-6)
    assert shown["count"] == 2
    assert all(shown[name] == base[name] / 1e6 for name in base if name != "count")


@pytest.mark.parametrize(
    ("value", "scale", "shown"),
    [(4_900_000, 1e-6, 4.9), (35_538_758, 1e-6, 35.538758), (3.0, 1.0, 3.0), (2.5, 1e3, 2500.0), (1536, 1 / 1024, 1.5)],
)
def test_a_displayed_value_is_rounded_once_as_in_the_per_request_file(value: float, scale: float, shown: float) -> None:
    assert displayed(value, scale) == shown


@given(SAMPLES)
def test_percentiles_are_numpys_linear_ones_and_the_spread_is_the_populations(sample: list[float]) -> None:
    found = statistics(np.sort(array(sample)))
    size = max(map(abs, sample))
    for q in (1, 5, 10, 25, 50, 75, 90, 95, 99):
        assert found[f"p{q}"] == pytest.approx(np.percentile(array(sample), q), rel=1e-12, abs=size * 1e-12)
    assert found["std"] == pytest.approx(np.std(array(sample)), rel=1e-6, abs=size * 1e-7)
    assert found["sum"] == math.fsum(sample)


@settings(deadline=None)
@given(SAMPLES, st.integers(1, 4), st.integers(0, 10**6))
def test_order_batches_and_the_number_of_reducers_change_no_number(
    tmp_path_factory: pytest.TempPathFactory, sample: list[float], parts: int, seed: int
) -> None:
    path = tmp_path_factory.mktemp("fold")
    one, many = folded(path, sample), folded(path, sample, parts, seed=seed + 1)
    assert many.statistics(1e-6) == one.statistics(1e-6)
    assert (many.sum(), many.least(), many.most(), many.count) == (one.sum(), one.least(), one.most(), one.count)


@pytest.mark.parametrize("budget", [20, 4000])
def test_the_same_holds_in_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(fold, "BUDGET", budget)
    values = np.random.default_rng(3).gamma(2.0, 1e7, 6000)
    expected = folded(tmp_path, values, listed=True).statistics(1e-6)
    for seed in range(1, 6):
        parts = 1 + seed % 4  # with four, each reducer stays within a budget of 4000 that all together exceed
        assert folded(tmp_path, values, parts, listed=True, seed=seed).statistics(1e-6) == expected


def test_beyond_its_budget_a_list_metric_is_exact_to_a_thousandth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "BUDGET", 1000)
    values = np.concatenate([np.random.default_rng(5).lognormal(16, 1, 20_000), np.zeros(50), [-4.0, -3.0]])
    found, exact = folded(tmp_path, values, 2, listed=True).statistics(1.0), statistics(np.sort(values))
    assert found is not None
    for name in ("avg", "min", "max", "sum", "count"):
        assert found[name] == exact[name], name
    assert found["std"] == pytest.approx(exact["std"], rel=1e-12)
    for q in (1, 5, 10, 25, 50, 75, 90, 95, 99):
        assert found[f"p{q}"] == pytest.approx(exact[f"p{q}"], rel=1e-3), q


def test_a_metric_of_one_value_a_request_is_never_put_into_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "BUDGET", 10)
    values = np.random.default_rng(5).gamma(2.0, 1e7, 500)
    assert folded(tmp_path, values, 2).statistics(1.0) == statistics(np.sort(values))


def test_values_beyond_memory_go_to_a_file_and_change_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "IN_MEMORY", 100)
    monkeypatch.setattr(fold, "_BLOCK", 64)
    values = np.random.default_rng(1).gamma(2.0, 1e7, 1234)
    held = Samples(tmp_path / "fold")
    for at in range(0, len(values), 37):
        held.add(values[at : at + 37])
    assert (tmp_path / "fold").stat().st_size >= 8 * (1234 - 137)
    assert Merged([held]).statistics(1.0) == statistics(np.sort(values))
    assert Merged([held]).sum() == math.fsum(values)


def test_going_into_buckets_takes_the_file_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "IN_MEMORY", 100)
    monkeypatch.setattr(fold, "BUDGET", 500)
    one = Samples(tmp_path / "fold", listed=True)
    for at in range(0, 700, 50):
        one.add(array(np.arange(at, at + 50)) + 1.0)
    assert not (tmp_path / "fold").exists()
    assert one.buckets is not None and one.buckets[0].count == one.count == 700


def test_what_is_absent_or_infinite_counts_for_nothing(tmp_path: Path) -> None:
    one = Samples(tmp_path / "fold")
    one.add(array([math.nan, 3, math.inf, -math.inf, 5]))
    one.add(array([math.nan]))
    assert one.count == 2
    assert Merged([one]).sum() == 8


def test_nothing_has_no_statistics(tmp_path: Path) -> None:
    nothing = Merged([Samples.load(Samples(tmp_path / "fold").dump())])
    assert nothing.count == 0
    assert (nothing.statistics(1.0), nothing.sum(), nothing.least(), nothing.most()) == (None, None, None, None)


@pytest.mark.parametrize("divisor", [1, 3], ids=["whole numbers", "fractions"])
def test_the_order_of_many_values_changes_no_statistic(divisor: int) -> None:
    values = np.random.default_rng(3).exponential(1e8, 150_000).round() / divisor
    found = statistics(values, 1e-6)
    assert found == statistics(np.sort(values), 1e-6) == statistics(values[::-1].copy(), 1e-6)
    assert found["std"] == pytest.approx(values.std() * 1e-6, rel=1e-12)
    assert found["p99"] == pytest.approx(np.percentile(values, 99) * 1e-6, rel=1e-12)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda x: abs(x) < 1e300), max_size=30))
def test_a_sum_is_rounded_once_whatever_is_added(values: list[float]) -> None:
    total, backwards, joined = Sum(), Sum(), Sum()
    for value in values:
        total.add(array([value]))
    backwards.add(array(values[::-1]))
    joined.merge(total)
    assert total.parts == backwards.parts == joined.parts
    assert total.exact() == sum(map(Fraction, values), Fraction())
    assert float(total) == math.fsum(values)


def test_buckets_survive_being_stored() -> None:
    import msgspec

    buckets = Buckets()
    buckets.add(array([-2.5, 0, 1, 1e9]))
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(buckets), type=Buckets)
    assert stored.statistics(1.0) == buckets.statistics(1.0)
