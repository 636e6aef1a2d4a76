"""The plots that everybody looks at first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from aiperf import Plot, PlotRun
from aiperf.sdk.plot import checked
from aiperf.testing import PlotContract, sample_runs
from aiperf_plot_basics import LatencyDistribution, ResponseAndServiceLatency, TtftDistribution, TtftOverTime
from aiperf_plot_basics.over_time import (
    ArrivalsAskedAndDelivered,
    FailuresOverTime,
    GpuPowerOverTime,
    RequestsInFlight,
    RequestTimeline,
    ServerRequestsOverTime,
)
from aiperf_plot_basics.spreads import LatencyHeatMap, LatencyHistogram, TtftByPromptLength, TtftHistogram
from aiperf_plot_basics.under_load import (
    GoodputUnderLoad,
    LatencyUnderLoad,
    ThroughputOverConcurrency,
    ThroughputPerUser,
    TtftUnderLoad,
)


class TestTtftOverTimeKeepsTheContract(PlotContract):
    plot = TtftOverTime


class TestTtftDistributionKeepsTheContract(PlotContract):
    plot = TtftDistribution


class TestLatencyDistributionKeepsTheContract(PlotContract):
    plot = LatencyDistribution


class TestThroughputPerUserKeepsTheContract(PlotContract):
    plot = ThroughputPerUser


class TestThroughputOverConcurrencyKeepsTheContract(PlotContract):
    plot = ThroughputOverConcurrency


class TestTtftUnderLoadKeepsTheContract(PlotContract):
    plot = TtftUnderLoad


class TestResponseAndServiceLatencyKeepsTheContract(PlotContract):
    plot = ResponseAndServiceLatency


class TestArrivalsAskedAndDeliveredKeepsTheContract(PlotContract):
    plot = ArrivalsAskedAndDelivered


class TestFailuresOverTimeKeepsTheContract(PlotContract):
    plot = FailuresOverTime


class TestGpuPowerOverTimeKeepsTheContract(PlotContract):
    plot = GpuPowerOverTime


class TestRequestsInFlightKeepsTheContract(PlotContract):
    plot = RequestsInFlight


class TestRequestTimelineKeepsTheContract(PlotContract):
    plot = RequestTimeline


class TestServerRequestsOverTimeKeepsTheContract(PlotContract):
    plot = ServerRequestsOverTime


class TestLatencyHeatMapKeepsTheContract(PlotContract):
    plot = LatencyHeatMap


class TestLatencyHistogramKeepsTheContract(PlotContract):
    plot = LatencyHistogram


class TestTtftByPromptLengthKeepsTheContract(PlotContract):
    plot = TtftByPromptLength


class TestTtftHistogramKeepsTheContract(PlotContract):
    plot = TtftHistogram


class TestGoodputUnderLoadKeepsTheContract(PlotContract):
    plot = GoodputUnderLoad


class TestLatencyUnderLoadKeepsTheContract(PlotContract):
    plot = LatencyUnderLoad


def test_a_point_stands_where_its_request_started(tmp_path: Path) -> None:
    (run,) = sample_runs(tmp_path, 1)
    figure = TtftOverTime().draw([run])
    assert figure is not None
    (series,) = figure.series
    np.testing.assert_allclose(series.x[:3], [0.0, 0.4, 0.8])
    np.testing.assert_allclose(series.y[:3], [21.0, 22.0, 23.0])


def test_a_distribution_ends_at_the_slowest_request(tmp_path: Path) -> None:
    (run,) = sample_runs(tmp_path, 1)
    figure = LatencyDistribution().draw([run])
    assert figure is not None
    (series,) = figure.series
    assert (series.x[0], series.x[-1], series.y[-1]) == (301.0, 311.0, pytest.approx(100.0))
    at_most_305 = series.y[np.searchsorted(series.x, 305.0, side="right") - 1]
    assert at_most_305 == pytest.approx(100.0 * np.mean(run.column("request_latency") <= 305.0))


@pytest.mark.parametrize(("plot", "axis"), [(TtftOverTime, "y"), (TtftDistribution, "x"), (LatencyDistribution, "x")])
def test_p50_and_p99_of_the_report_are_marked(tmp_path: Path, plot: type[Plot], axis: str) -> None:
    figure = plot(None).draw(sample_runs(tmp_path, 2))
    assert figure is not None and checked(figure) is figure
    assert [(mark.series, mark.axis, mark.value, mark.label, mark.shown) for mark in figure.marks] == [
        (run, axis, value, label, f"{value} ms")
        for run in ("run0", "run1")
        for label, value in (("p50", 310.0), ("p99", 312.0))
    ]  # fmt: skip


@pytest.mark.parametrize("plot", [TtftOverTime, TtftDistribution, LatencyDistribution])
def test_percentiles_of_repeats_are_said_to_be_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plot: type[Plot]
) -> None:  # fmt: skip
    runs = sample_runs(tmp_path, 2)
    figure = plot(None).draw(runs)
    assert figure is not None and not any("means" in note for note in figure.notes)
    monkeypatch.setattr(type(runs[0]), "parts", lambda run: [run, run])
    figure = plot(None).draw(runs)
    assert figure is not None and "p50 and p99 are the means of those of the repeats" in figure.notes


def test_a_report_without_percentiles_gets_those_of_its_requests(tmp_path: Path) -> None:
    (run,) = sample_runs(tmp_path, 1)
    bare = {**run.summary, "request_latency": {"unit": "ms", "avg": 1.0, "p99": 1234.5678}}
    figure = LatencyDistribution().draw([PlotRun("run", bare, {"request_latency": np.array([3.0, np.nan, 1.0, 2.0])})])
    assert figure is not None
    assert [(mark.value, mark.shown) for mark in figure.marks] == [(2.0, "2.00 ms"), (1234.5678, "1,235 ms")]


@pytest.mark.parametrize(("arrivals", "share"), [({}, 80.0), ({"aborted_in_flight": 6, "unfinished": 4}, 100 * 40 / 60)])
def test_failed_requests_are_in_the_share_of_requests(tmp_path: Path, arrivals: dict[str, int], share: float) -> None:
    """Of 40 that succeeded and 10 that failed, and some that were cut off."""
    (run,) = sample_runs(tmp_path, 1)
    summary = {**run.summary, "error_request_count": {"unit": "requests", "avg": 10.0}, "measurement": {"arrivals": arrivals}}
    figure = LatencyDistribution().draw([PlotRun("run", summary, {"request_latency": run.column("request_latency")})])
    assert figure is not None
    assert figure.series[0].y[-1] == pytest.approx(share)
    assert "failed ones included" in figure.y.label


def test_runs_are_joined_and_labelled_in_the_order_of_load(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path, 3)
    figure = TtftUnderLoad().draw([runs[2], runs[0], runs[1]])
    assert figure is not None
    line, median = figure.series
    assert line.x.tolist() == median.x.tolist() == [2.5, 5.0, 10.0]
    assert (line.name, line.y[0], median.name, median.y[0]) == ("p99", 312.0, "p50", 310.0)
    assert line.labels == ("concurrency 1", "concurrency 2", "concurrency 4") and line.points == "run"


def test_the_line_turns_back_where_more_load_gives_less(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path, 3)
    summary = {**runs[2].summary, "request_throughput": {"unit": "requests/sec", "avg": 4.0}}
    figure = TtftUnderLoad().draw([PlotRun("overloaded", summary), *runs[:2]])
    assert figure is not None
    assert figure.series[-1].x.tolist() == [2.5, 5.0, 4.0]
    assert checked(figure) is figure


def test_runs_whose_loads_cannot_be_compared_keep_their_order(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path, 2)
    bare = {tag: entry for tag, entry in runs[0].summary.items() if tag not in ("input_config", "effective_concurrency")}
    figure = TtftUnderLoad().draw([runs[1], PlotRun("bare", bare)])
    assert figure is not None
    assert figure.series[0].labels == ("run1", "bare")


def test_a_run_without_the_numbers_is_left_out(tmp_path: Path) -> None:
    figure = ThroughputPerUser().draw([*sample_runs(tmp_path, 2), PlotRun("broken", {})])
    assert figure is not None
    assert len(figure.series[0].x) == 2


def test_the_concurrency_is_what_was_measured(tmp_path: Path) -> None:
    figure = ThroughputOverConcurrency().draw(sample_runs(tmp_path, 2))
    assert figure is not None
    assert figure.series[-1].x.tolist() == [0.9, 1.8] and figure.series[-1].y.tolist() == [80.0, 160.0]
