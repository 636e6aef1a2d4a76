"""The reference's pictures: the contract of each, and their numbers."""

from __future__ import annotations

from aiperf.testing import PlotContract
from aiperf_plot_presets import (
    DispersedThroughput,
    GpuUtilizationAndThroughput,
    ItlOverTime,
    LatencyOverTime,
    ParetoInteractivity,
    ParetoLatency,
    TimeslicesItl,
    TimeslicesLatency,
    TimeslicesThroughput,
    TimeslicesTtft,
    TtftTimeline,
    TtftVsThroughput,
)


class TestParetoLatencyKeepsTheContract(PlotContract):
    plot = ParetoLatency


class TestParetoInteractivityKeepsTheContract(PlotContract):
    plot = ParetoInteractivity


class TestTtftVsThroughputKeepsTheContract(PlotContract):
    plot = TtftVsThroughput


class TestTtftTimelineKeepsTheContract(PlotContract):
    plot = TtftTimeline


class TestTimeslicesTtftKeepsTheContract(PlotContract):
    plot = TimeslicesTtft


class TestTimeslicesItlKeepsTheContract(PlotContract):
    plot = TimeslicesItl


class TestTimeslicesThroughputKeepsTheContract(PlotContract):
    plot = TimeslicesThroughput


class TestTimeslicesLatencyKeepsTheContract(PlotContract):
    plot = TimeslicesLatency


class TestGpuUtilizationAndThroughputKeepsTheContract(PlotContract):
    plot = GpuUtilizationAndThroughput


class TestItlOverTimeKeepsTheContract(PlotContract):
    plot = ItlOverTime


class TestLatencyOverTimeKeepsTheContract(PlotContract):
    plot = LatencyOverTime


class TestDispersedThroughputKeepsTheContract(PlotContract):
    plot = DispersedThroughput
