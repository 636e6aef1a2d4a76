"""Basic plots: latency within a run, and throughput against latency over several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries

_START = "request_start_ns"
_TTFT = "time_to_first_token"


class TtftOverTime(Plot):
    """A point per request: a growing queue shows as a slope, a warm-up as a bend, a freeze as a spike."""

    title = "Time to first token over the run"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in by_load(runs):
            start_ns, ttft_ms = run.column(_START), run.column(_TTFT)
            known = np.isfinite(start_ns) & np.isfinite(ttft_ms)
            if known.any():
                since_s = (start_ns[known] - start_ns[known].min()) / 1e9
                series.append(PlotSeries(run.label, since_s, ttft_ms[known], kind="points"))
        return _figure(self.title, Axis("started after (s)"), Axis("time to first token (ms)"), series)


class _Distribution(Plot):
    """A curve per run: the share of all requests, in %, up to each value.

    A failed request, or one that was cut off in flight, never comes to a value: with 20 % of them the curve ends at 80 %.
    """

    tag: ClassVar[str]
    axis: ClassVar[Axis]

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in by_load(runs):
            values = run.column(self.tag)
            ordered = np.sort(values[np.isfinite(values)])
            if len(ordered):
                share = np.arange(1.0, len(ordered) + 1.0) * (100.0 / (len(ordered) + unanswered(run)))
                series.append(PlotSeries(run.label, ordered, share, kind="steps"))
        return _figure(self.title, self.axis, Axis("share of requests, failed ones included (%)"), series)


class TtftDistribution(_Distribution):
    title = "Distribution of the time to first token"
    tag = _TTFT
    axis = Axis("time to first token (ms)")


class LatencyDistribution(_Distribution):
    title = "Distribution of the request latency"
    tag = "request_latency"
    axis = Axis("request latency (ms)")


class _Trade(Plot):
    """A labelled point per run, joined in the order of load: a saturated server's line may turn back."""

    runs = 2
    across: ClassVar[tuple[str, str]]
    up: ClassVar[tuple[str, str]]
    axes: ClassVar[tuple[Axis, Axis]]

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        measured = [run for run in runs if None not in (run.number(*self.across), run.number(*self.up))]
        unit = load_unit(measured)
        points = []
        for run in by_load(measured):
            name = run.label if unit is None else f"{run.label} ({_LOADS[unit].format(loads(run)[unit])})"
            x, y = (np.array([run.number(*what)], dtype=np.float64) for what in (self.across, self.up))
            points.append(PlotSeries(name, x, y, kind="points"))
        if not points:
            return None
        x_of_all, y_of_all = (np.concatenate([getattr(point, axis) for point in points]) for axis in ("x", "y"))
        # The line comes last, so that each run keeps its colour of other plots.
        return _figure(self.title, *self.axes, [*points, PlotSeries("all runs, by load", x_of_all, y_of_all, kind="path")])


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


def by_load(runs: Sequence[PlotRun]) -> list[PlotRun]:
    """The runs in the order of their load; in the given order where their loads can't be compared."""
    unit = load_unit(runs)
    return list(runs) if unit is None else sorted(runs, key=lambda run: loads(run)[unit])


def load_unit(runs: Sequence[PlotRun]) -> str | None:
    """The measure of load that all of the runs have and that tells most of them apart; None where there is none."""
    measures = [loads(run) for run in runs]
    shared = [unit for unit in _LOADS if all(unit in measure for measure in measures)]
    return max(shared, key=lambda unit: len({measure[unit] for measure in measures}), default=None)


_LOADS = {"rate": "{:g} requests/s", "concurrency": "concurrency {:g}", "users": "{:g} users", "in_flight": "{:.3g} in flight"}
"""Measures of load and how they are written; those that were asked for come first."""


def loads(run: PlotRun) -> dict[str, float]:
    """The load that was asked for in the profiling phase, and the requests that were in flight, by measure."""
    phases = run.summary.get("input_config", {}).get("phases", ())
    wanted: Mapping[str, Any] = next((phase for phase in phases if phase.get("kind", "profiling") == "profiling"), {})
    asked = {unit: wanted.get(unit) for unit in _LOADS} | {"in_flight": run.number("effective_concurrency")}
    return {unit: float(load) for unit, load in asked.items() if isinstance(load, int | float)}


def unanswered(run: PlotRun) -> int:
    """Requests of the profiling phase that failed, or were cut off in flight."""
    arrivals = run.summary.get("measurement", {}).get("arrivals", {})
    cut_off = arrivals.get("aborted_in_flight", 0) + arrivals.get("unfinished", 0)
    return round(run.number("error_request_count") or 0) + int(cut_off)


def _figure(title: str, x: Axis, y: Axis, series: Sequence[PlotSeries]) -> Figure | None:
    return Figure(title, x, y, tuple(series)) if series else None
