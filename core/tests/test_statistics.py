"""The choice of statistics: what may be typed, and what tables and files make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.planning.kernel_options import KernelOptions
from aiperf.registry.option_specs import validate
from aiperf.registry.specs import specs
from aiperf.sdk.exporter import Target
from aiperf.sdk.plan import OutputPlan
from aiperf.sdk.statistics import percentile, percentile_name
from aiperf.sdk.summary import STATISTICS, Result

CONSOLE = ("avg", "min", "max", "p99", "p90", "p50", "std")


def typed(**given: Any) -> tuple[KernelOptions | None, list[str]]:
    options, errors = validate(KernelOptions, specs(KernelOptions), given, {})
    return options, [error.message for error in errors]


@pytest.mark.parametrize(
    ("given", "found"),
    [(["50", "90", "99.9"], [50.0, 90.0, 99.9]), (["99.999999999", "0.1"], [99.999999999, 0.1]), ([95, 99.5], [95.0, 99.5])],
)
def test_percentiles_are_numbers_between_0_and_100(given: list[Any], found: list[float]) -> None:
    options, errors = typed(percentiles=given)
    assert options is not None and (options.percentiles, errors) == (found, [])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["0"], "0 is out of range: a percentile is above 0 and below 100; the extremes are the columns min and max"),
        (["50", "101"], "101 is out of range"), (["100"], "100 is out of range"), (["nan"], "nan is out of range"),
        (["-1"], "-1 is out of range"), (["50", "90", "50"], "50 is given twice; give each percentile once"),
        (["50", "50.0"], "50.0 is given twice"),
        (["fast"], "'fast' is no percentile; write numbers above 0 and below 100, such as 50,90,99.9"),
        (["p99"], "'p99' is no percentile; write numbers"), ([""], "'' is no percentile"),
        (["99.9999999999"], "99.9999999999 has too many digits; a percentile has at most 9 decimals"),
    ],
)  # fmt: skip
def test_what_is_no_percentile_is_refused(given: list[str], sentence: str) -> None:
    options, (error,) = typed(percentiles=given)
    assert options is None and error.startswith(f"--percentiles: {sentence}")


def test_columns_are_statistics_and_any_percentile() -> None:
    options, _ = typed(columns=["p99.90", "count", "avg", "p7"])
    assert options is not None and options.columns == ["p99.9", "count", "avg", "p7"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["rate"], "'rate' is no statistic; there are avg, min, max, sum, std, count, and percentiles such as p50 or p99.9"),
        (["avg", "mean"], "'mean' is no statistic; did you mean avg? There are avg,"),
        (["avgg"], "'avgg' is no statistic; did you mean avg?"), (["medain"], "'medain' is no statistic; did you mean p50?"),
        (["STD"], "'STD' is no statistic; did you mean std?"), (["99.9"], "'99.9' is no statistic; did you mean p99.9?"),
        (["p101"], "p101 is out of range"), (["p0"], "p0 is out of range"), (["avg", "avg"], "avg is given twice"),
        (["p50", "p50.0"], "p50.0 is given twice; give each column once"), (["p"], "'p' is no statistic"),
    ],
)
def test_what_is_no_column_is_refused_with_the_near_miss(given: list[str], sentence: str) -> None:
    options, (error,) = typed(columns=given)
    assert options is None and error.startswith(f"--columns: {sentence}")


@pytest.mark.parametrize(
    ("percentiles", "columns", "shown"),
    [
        ((), (), CONSOLE), ((95.0, 99.9), (), ("avg", "min", "max", "p95", "p99.9", "std")),
        ((), ("p99", "count"), ("p99", "count")), ((99.0, 10.0), ("max", "p10"), ("max", "p10", "p99")),
    ],
)  # fmt: skip
def test_a_table_has_what_was_chosen_in_that_order(percentiles: Any, columns: Any, shown: tuple[str, ...]) -> None:
    assert Target(Path(), percentiles=percentiles, columns=columns).statistics(CONSOLE) == shown


def test_percentiles_among_the_columns_are_asked_for_too() -> None:
    assert OutputPlan("", "", percentiles=(99.9, 50.0), columns=("p75", "avg", "p50")).asked_percentiles == (50.0, 75.0, 99.9)


@pytest.mark.parametrize(("percent", "name"), [(50, "p50"), (99.9, "p99.9"), (10.0, "p10"), (0.000000001, "p0.000000001")])
def test_a_percentile_has_one_name(percent: float, name: str) -> None:
    assert (percentile_name(percent), percentile(name)) == (name, percent)


@pytest.mark.parametrize("name", ["avg", "p", "p5x", "p1.2.3", "²"])
def test_another_statistic_is_no_percentile(name: str) -> None:
    assert percentile(name) is None


def test_a_percentile_that_was_asked_for_stands_in_its_place_in_the_entry() -> None:
    stats = dict.fromkeys(STATISTICS, 1.0) | {"p99.9": 2.0, "p2": 3.0, "mode": 4.0}
    entry = Result("t", "T", "ms", stats, lower={"p99.9": 1.5, "avg": 1.0}, upper={"p2": 9.0}).entry()
    assert [name for name in entry if name.startswith("p")] == [
        "p1", "p2", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9",
    ]  # fmt: skip
    assert (entry["lower"], entry["upper"], "mode" in entry) == ({"avg": 1.0, "p99.9": 1.5}, {"p2": 9.0}, False)
    usual = Result("t", "T", "ms", dict.fromkeys(STATISTICS, 1.0)).entry()
    assert [*usual] == [name for name in entry if name in usual and name not in ("lower", "upper")]
