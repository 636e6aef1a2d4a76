"""What plots share: windows, slots, frontiers, loads, rates of counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aiperf import PlotRun
from aiperf.sdk.plot import TelemetrySeries
from aiperf_plotting.loads import gpus, grouped, interval, load_label, load_unit, models
from aiperf_plotting.preset import Preset, Value, draw
from aiperf_plotting.several import frontier
from aiperf_plotting.telemetry import named_series
from aiperf_plotting.times import in_flight, rolling, slots, windows
from aiperf_plotting.words import labelled, shown


def run(label: str, concurrency: float | None = None, **numbers: float) -> PlotRun:
    config: dict[str, Any] = {} if concurrency is None else {"phases": [{"kind": "profiling", "concurrency": concurrency}]}
    return PlotRun(label, {"input_config": config} | {tag: {"unit": "ms", "avg": value} for tag, value in numbers.items()})


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (3.0, 3.0), (-5.0, 1e6), (0.0, 59.9), (99.9, 100.1), (1e9, 1e9 + 7)])
def test_windows_are_even_and_hold_all_values(low: float, high: float) -> None:
    edges = windows(low, high)
    assert edges[0] <= low and high < edges[-1] and len(edges) <= 63
    np.testing.assert_allclose(np.diff(edges), edges[1] - edges[0], rtol=1e-6)


@pytest.mark.parametrize(("value", "edges"), [(45.711174, [45.0, 46.0]), (0.0, [0.0, 0.02]), (4e8, [4e8, 4.1e8])])
def test_values_that_are_the_same_have_one_window(value: float, edges: list[float]) -> None:
    for high in (value, value * (1 + 1e-12)):
        np.testing.assert_allclose(windows(value, high, 50), edges)


def test_what_ends_makes_room_for_what_begins_at_once() -> None:
    at, count = in_flight(np.array([0.0, 2.0, 2.0]), np.array([2.0, 3.0, 5.0]))
    assert (at.tolist(), count.tolist()) == ([0.0, 2.0, 3.0, 5.0], [1.0, 2.0, 1.0, 0.0])
    assert slots(np.array([0.0, 2.0, 2.0, 3.0]), np.array([2.0, 3.0, 5.0, 4.0])).tolist() == [0, 0, 1, 0]


def test_rolling_percentiles_begin_with_fewer_values() -> None:
    (middle,) = rolling(np.array([4.0, 2.0, 9.0, 1.0]), 3, (50.0,))
    assert middle.tolist() == [4.0, 3.0, 4.0, 2.0]


@pytest.mark.parametrize("together", [1, 40, 1 << 20])
def test_rolling_percentiles_are_those_of_each_window(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_plotting.times._SORTED", together)
    values, percents = np.random.default_rng(1).uniform(0, 9, 50), (50.0, 95.0)
    for window in (1, 4, 50, 60):
        expected = [np.percentile(values[max(0, end + 1 - window) : end + 1], percents) for end in range(50)]
        assert np.array(rolling(values, window, percents)) == pytest.approx(np.array(expected).T)


def test_a_frontier_has_the_points_that_none_beats() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 9.0, 7.0, 9.0])
    assert frontier(x, y, less_x=True, less_y=False) == [0, 1, 3], "a tie stays"
    assert frontier(x, y, less_x=False, less_y=False) == [1, 3]


def test_runs_are_grouped_and_each_group_is_in_the_order_of_load() -> None:
    runs = [run("a", 8), run("b", 2), run("c", 4)]
    for each, group in zip(runs, ("x", "x", "y"), strict=True):
        each.group = group
    assert {group: [one.label for one in members] for group, members in grouped(runs).items()} == {"x": ["b", "a"], "y": ["c"]}
    assert load_unit(runs) == "concurrency" and load_label(runs[0], "concurrency") == "concurrency 8"


def of_model(label: str, concurrency: float, name: str, in_flight: float) -> PlotRun:
    about = {"models": {"items": [{"name": name}]}, "phases": [{"kind": "profiling", "concurrency": concurrency}]}
    return PlotRun(label, {"input_config": about, "effective_concurrency": {"avg": in_flight}})


def test_no_line_leads_from_one_model_to_another() -> None:
    runs = [of_model(f"{name}{load}", load, name, load - 0.1) for name in ("x", "y") for load in (8, 2)]
    assert {group: [one.label for one in members] for group, members in grouped(runs).items()} == {
        "x": ["x2", "x8"], "y": ["y2", "y8"],
    }  # fmt: skip
    assert list(grouped(runs[::2])) == ["x", "y"], "one run of each, too"
    assert list(grouped(runs[:2])) == [""]
    assert models(PlotRun("old", {"input_config": {"endpoint": {"model_names": ["m"]}}})) == ("m",)


def test_the_load_that_was_asked_for_goes_before_the_one_that_was_measured() -> None:
    runs = [of_model(f"{number}", load, "m", load - number / 10) for number, load in enumerate((2, 2, 8, 8))]
    assert load_unit(runs) == "concurrency"
    assert load_unit(runs[:2]) == "in_flight", "nothing that was asked for differs"
    assert load_unit(runs[:1]) == "concurrency"


def test_an_interval_of_one_run_is_its_value() -> None:
    found = interval(run("a", request_latency=4.0), "request_latency", "avg", per=2.0)
    assert found is not None and (found.mean, found.low, found.high, found.count) == (2.0, 2.0, 2.0, 1)
    assert interval(run("a"), "request_latency", "avg") is None


def test_gpus_are_counted_once() -> None:
    one, other = {"gpu_uuid": "a"}, {"gpu_uuid": "b"}
    endpoints = {"h1": {"gpus": {"gpu_0": one, "gpu_1": other}}, "h2": {"gpus": {"gpu_0": one}}}
    assert gpus(PlotRun("a", {"telemetry_data": {"endpoints": endpoints}})) == 2 and gpus(PlotRun("a", {})) == 0


def test_without_telemetry_per_gpu_is_the_whole_and_the_axis_says_so() -> None:
    preset = Preset("scatter_line", Value("request_latency"), Value("output_token_throughput_per_gpu"))
    runs = [run(f"c{n}", n, request_latency=1.0 * n, output_token_throughput=10.0 * n) for n in (2, 1)]
    figure = draw(preset, runs)
    assert figure is not None and figure.y.label == "output tokens per second, avg, all GPUs"
    assert figure.series[0].y.tolist() == [10.0, 20.0] and "the throughput is that of all" in figure.notes[0]


def test_counters_are_rates_and_series_are_named_by_what_differs() -> None:
    at = np.array([1, 2, 3, 4], dtype=np.int64) * 10**9
    series = [
        TelemetrySeries("s", "tokens", "tokens", {"gpu": gpu, "host": "h"}, at, np.array([0.0, 5.0, 1.0, 4.0]), kind="counter")
        for gpu in ("0", "1")
    ]
    found = named_series(series, 1e9)
    assert [(each.name, each.unit, each.at_s.tolist(), each.values.tolist()) for each in found] == [
        (f"gpu {gpu}", "tokens/s", [1.0, 3.0], [5.0, 3.0]) for gpu in "01"
    ], "a reset is no rate"


def test_axes_name_metric_statistic_and_unit() -> None:
    assert labelled("request_latency", "p99", []) == "request latency, p99 (ms)"
    assert labelled("some_metric", "avg", [PlotRun("a", {"some_metric": {"unit": "count"}})]) == "some metric, avg (count)"
    assert [shown(value, "ms") for value in (1234.5, 12.34, 1.234)] == ["1,234 ms", "12.3 ms", "1.23 ms"]
