"""The plots that everybody looks at first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from aiperf import PlotRun
from aiperf.testing import PlotContract, sample_runs
from aiperf_plot_basics import (
    LatencyDistribution,
    ThroughputOverConcurrency,
    ThroughputPerUser,
    TtftDistribution,
    TtftOverTime,
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


def test_runs_stand_from_left_to_right_whatever_their_order(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path, 3)
    figure = TtftUnderLoad().draw([runs[2], runs[0], runs[1]])
    assert figure is not None
    *points, line = figure.series
    assert line.x.tolist() == [2.5, 5.0, 10.0]
    assert [(point.name, point.x[0]) for point in points] == [("run2", 10.0), ("run0", 2.5), ("run1", 5.0)]


def test_a_run_without_the_numbers_is_left_out(tmp_path: Path) -> None:
    figure = ThroughputPerUser().draw([*sample_runs(tmp_path, 2), PlotRun("broken", {})])
    assert figure is not None
    *points, line = figure.series
    assert [point.name for point in points] == ["run0", "run1"] and len(line.x) == 2


def test_the_concurrency_is_what_was_measured(tmp_path: Path) -> None:
    figure = ThroughputOverConcurrency().draw(sample_runs(tmp_path, 2))
    assert figure is not None
    assert figure.series[-1].x.tolist() == [0.9, 1.8] and figure.series[-1].y.tolist() == [80.0, 160.0]
