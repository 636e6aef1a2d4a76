"""Basic plots: latency within a run, and throughput against latency over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, Series

_START = "request_start_ns"
_TTFT = "time_to_first_token"


class TtftOverTime(Plot):
    """A point per request: a growing queue shows as a slope, a warm-up as a bend, a freeze as a spike."""

    title = "Time to first token over the run"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in runs:
            start_ns, ttft_ms = run.column(_START), run.column(_TTFT)
            known = np.isfinite(start_ns) & np.isfinite(ttft_ms)
            if known.any():
                since_s = (start_ns[known] - start_ns[known].min()) / 1e9
                series.append(Series(run.label, since_s, ttft_ms[known], kind="points"))
        return _figure(self.title, Axis("started after (s)"), Axis("time to first token (ms)"), series)


class _Distribution(Plot):
    """A curve per run: the share of requests, in %, up to each value."""

    tag: ClassVar[str]
    axis: ClassVar[Axis]

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in runs:
            values = run.column(self.tag)
            ordered = np.sort(values[np.isfinite(values)])
            if len(ordered):
                share = np.arange(1.0, len(ordered) + 1.0) * (100.0 / len(ordered))
                series.append(Series(run.label, ordered, share, kind="steps"))
        return _figure(self.title, self.axis, Axis("share of requests (%)"), series)


class TtftDistribution(_Distribution):
    title = "Distribution of the time to first token"
    tag = _TTFT
    axis = Axis("time to first token (ms)")


class LatencyDistribution(_Distribution):
    title = "Distribution of the request latency"
    tag = "request_latency"
    axis = Axis("request latency (ms)")


class _Trade(Plot):
    """A labelled point per run, joined from left to right."""

    runs = 2
    across: ClassVar[tuple[str, str]]
    up: ClassVar[tuple[str, str]]
    axes: ClassVar[tuple[Axis, Axis]]

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        values = [(run.label, run.number(*self.across), run.number(*self.up)) for run in runs]
        points = [Series(label, np.array([x]), np.array([y]), kind="points") for label, x, y in values if None not in (x, y)]
        if not points:
            return None
        x, y = np.array(sorted((point.x[0], point.y[0]) for point in points)).T
        # The line comes last, so that each run keeps its colour of other plots.
        return _figure(self.title, *self.axes, [*points, Series("all runs", x, y)])


class ThroughputPerUser(_Trade):
    """Up and to the right is better; a server has one such line, and each load is a point on it."""

    title = "Throughput of all against that of one user"
    across = ("output_token_throughput_per_user", "avg")
    up = ("output_token_throughput", "avg")
    axes = (Axis("output tokens per second and user, avg"), Axis("output tokens per second"))


class ThroughputOverConcurrency(_Trade):
    """The line levels off where the server is saturated.  Requests in flight are measured values, not the requested ones."""

    title = "Throughput over concurrency"
    across = ("effective_concurrency", "avg")
    up = ("output_token_throughput", "avg")
    axes = (Axis("requests in flight, avg"), Axis("output tokens per second"))


class TtftUnderLoad(_Trade):
    """The line rises where the server is saturated."""

    title = "Time to first token under load"
    across = ("request_throughput", "avg")
    up = (_TTFT, "p99")
    axes = (Axis("requests per second"), Axis("time to first token, p99 (ms)"))


def _figure(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> Figure | None:
    return Figure(title, x, y, tuple(series)) if series else None
