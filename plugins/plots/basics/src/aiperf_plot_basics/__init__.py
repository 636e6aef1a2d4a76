"""Basic plots: latency within a run, and throughput against latency over several runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.sdk.plot import Mark

_START = "request_start_ns"
_TTFT = "time_to_first_token"
_MARKED = (50, 99)
"""Percentiles that pictures of single requests mark."""


class TtftOverTime(Plot):
    """A point per request: a growing queue shows as a slope, a warm-up as a bend, a freeze as a spike."""

    title = "Time to first token over the run"
    columns = (_START, _TTFT)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series, marks = list[PlotSeries](), list[Mark]()
        for run in by_load(runs):
            start_ns, ttft_ms = run.column(_START), run.column(_TTFT)
            known = np.isfinite(start_ns) & np.isfinite(ttft_ms)
            if known.any():
                since_s = (start_ns[known] - start_ns[known].min()) / 1e9
                series.append(PlotSeries(run.label, since_s, ttft_ms[known], kind="points"))
                marks += _percentiles(run, _TTFT, "y")
        return _figure(self.title, Axis("started after (s)"), Axis("time to first token (ms)"), series, marks)


class _Distribution(Plot):
    """A curve per run: the share of all requests, in %, up to each value.

    A failed request, or one that was cut off in flight, never comes to a value: with 20 % of them the curve ends at 80 %.
    Percentiles are those of the report, which are of good requests alone: then they stand below their share of all.
    """

    tag: ClassVar[str]
    axis: ClassVar[Axis]

    def __init_subclass__(cls) -> None:
        cls.columns = (cls.tag,)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series, marks = list[PlotSeries](), list[Mark]()
        for run in by_load(runs):
            values = run.column(self.tag)
            ordered = np.sort(values[np.isfinite(values)])
            if len(ordered):
                share = np.arange(1.0, len(ordered) + 1.0) * (100.0 / (len(ordered) + unanswered(run)))
                series.append(PlotSeries(run.label, ordered, share, kind="steps"))
                marks += _percentiles(run, self.tag, "x")
        return _figure(self.title, self.axis, Axis("share of requests, failed ones included (%)"), series, marks)


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
    line: ClassVar[str] = "all runs, by load"
    below: ClassVar[tuple[str, str, str] | None] = None
    """A statistic with a line of its own, and the line's name."""

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
        # Lines come last, so that each run keeps its colour of other plots.
        lines = [PlotSeries(self.line, x_of_all, y_of_all, kind="path")]
        if self.below is not None:
            tag, statistic, name = self.below
            known = [run for run in by_load(measured) if run.number(tag, statistic) is not None]
            x, y = (np.array([run.number(*what) for run in known], np.float64) for what in (self.across, (tag, statistic)))
            lines += [PlotSeries(name, x, y, kind="path")] if known else []
        return _figure(self.title, *self.axes, [*points, *lines])


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
    """The lines rise where the server is saturated, that of p99 first."""

    title = "Time to first token under load"
    across = ("request_throughput", "avg")
    up = (_TTFT, "p99")
    below = (_TTFT, "p50", "p50 of all runs, by load")
    line = "p99 of all runs, by load"
    axes = (Axis("requests per second"), Axis("time to first token (ms)"))


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


def _percentiles(run: PlotRun, tag: str, axis: str) -> Iterator[Mark]:
    """The percentiles of the run's report; those of its requests where the report lacks them."""
    for percent in _MARKED:
        value = run.number(tag, f"p{percent}")
        if value is None:
            column = run.column(tag)
            value = float(np.percentile(column[np.isfinite(column)], percent))
        yield Mark(run.label, axis, value, f"p{percent}", f"{value:,.{_digits(value)}f} ms")


def _digits(value: float) -> int:
    """Digits behind the point: three or four digits tell a value in all."""
    return 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2


def _figure(title: str, x: Axis, y: Axis, series: Sequence[PlotSeries], marks: Sequence[Mark] = ()) -> Figure | None:
    return Figure(title, x, y, tuple(series), tuple(marks)) if series else None
