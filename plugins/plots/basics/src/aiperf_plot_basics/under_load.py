"""What a server does under more and more load: a point a run, joined in the order of load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from aiperf import Axis, Figure, Plot, PlotRun
from aiperf_plotting.loads import load_label, load_unit
from aiperf_plotting.preset import Preset, Value
from aiperf_plotting.several import placed, series_of


class _Trade(Plot):
    """Lines over the runs, each a statistic; a saturated server's line may turn back."""

    runs = 2
    across: ClassVar[Value]
    up: ClassVar[tuple[Value, ...]]
    axes: ClassVar[tuple[Axis, Axis]]

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        unit, series = load_unit(runs), []
        for number, value in enumerate(self.up):
            for group, points in placed(Preset("scatter_line", self.across, value), runs).items():
                if points:
                    labels = [load_label(point.run, unit) for point in points] if number == 0 else []
                    name = "; ".join(filter(None, (value.statistic if len(self.up) > 1 else "runs, by load", group)))
                    series += series_of(name, points, labels, group if len(self.up) == 1 else "")
        return Figure(self.title, *self.axes, tuple(series)) if series else None


class ThroughputPerUser(_Trade):
    """Up and to the right is better; a server has one such line, and each load is a point on it."""

    title = "Throughput of all against that of one user"
    across = Value("output_token_throughput_per_user")
    up = (Value("output_token_throughput"),)
    axes = (Axis("output tokens per second and user, avg"), Axis("output tokens per second"))


class ThroughputOverConcurrency(_Trade):
    """The line levels off where the server is saturated.  Requests in flight are measured values, not the requested ones."""

    title = "Throughput over concurrency"
    across = Value("effective_concurrency")
    up = (Value("output_token_throughput"),)
    axes = (Axis("requests in flight, avg"), Axis("output tokens per second"))


class TtftUnderLoad(_Trade):
    """The lines rise where the server is saturated, that of p99 first."""

    title = "Time to first token under load"
    across = Value("request_throughput")
    up = (Value("time_to_first_token", "p99"), Value("time_to_first_token", "p50"))
    axes = (Axis("requests per second"), Axis("time to first token (ms)"))


class LatencyUnderLoad(_Trade):
    """The lines rise where the server is saturated, that of p99 first."""

    title = "Request latency under load"
    across = Value("request_throughput")
    up = (Value("request_latency", "p99"), Value("request_latency", "p90"), Value("request_latency", "p50"))
    axes = (Axis("requests per second"), Axis("request latency (ms)"))


class GoodputUnderLoad(_Trade):
    """Good requests rise with the load as long as they meet their objectives, and fall where too many no longer do."""

    title = "Requests that meet their objectives, under load"
    across = Value("request_throughput")
    up = (Value("goodput"),)
    axes = (Axis("requests per second"), Axis("requests per second that meet all objectives"))
