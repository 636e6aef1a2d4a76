"""Basic plots: latency within a run, the load as it went on, and what a server does under more and more load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.sdk.plot import Mark
from aiperf_plotting.loads import by_load, first_of, first_repeat
from aiperf_plotting.words import shown

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
            start_ns, ttft_ms = first_repeat(run).column(_START), first_repeat(run).column(_TTFT)
            known = np.isfinite(start_ns) & np.isfinite(ttft_ms)
            if known.any():
                since_s = (start_ns[known] - start_ns[known].min()) / 1e9
                rows = np.flatnonzero(known).astype(np.int64)
                series.append(PlotSeries(run.label, since_s, ttft_ms[known], kind="points", points="request", rows=rows))
                marks += _percentiles(run, _TTFT, "y")
        notes = (*first_of(runs), *_means(runs))
        return _figure(self.title, Axis("started after (s)"), Axis("time to first token (ms)"), series, marks, notes)


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
                series.append(PlotSeries(run.label, ordered, share, kind="steps", points="request"))
                marks += _percentiles(run, self.tag, "x")
        return _figure(self.title, self.axis, Axis("share of requests, failed ones included (%)"), series, marks, _means(runs))


class TtftDistribution(_Distribution):
    title = "Distribution of the time to first token"
    tag = _TTFT
    axis = Axis("time to first token (ms)")


class LatencyDistribution(_Distribution):
    title = "Distribution of the request latency"
    tag = "request_latency"
    axis = Axis("request latency (ms)")


class ResponseAndServiceLatency(Plot):
    """Service latency counts from the start of a request, response latency from when it was due: the gap is its wait."""

    title = "Response and service latency"
    most_runs = 1
    columns = ("request_latency", "effective_latency")

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        run, series = runs[0], list[PlotSeries]()
        names = {"request_latency": "service, from the start", "effective_latency": "response, from when it was due"}
        for tag, name in names.items():
            values = run.column(tag)
            ordered = np.sort(values[np.isfinite(values)])
            if not len(ordered):
                return None
            share = np.arange(1.0, len(ordered) + 1.0) * (100.0 / (len(ordered) + unanswered(run)))
            series.append(PlotSeries(name, ordered, share, "steps", points="request"))
        return _figure(self.title, Axis("latency (ms)"), Axis("share of requests, failed ones included (%)"), series)


def unanswered(run: PlotRun) -> int:
    """Requests of the profiling phase that failed, or were cut off in flight."""
    count = 0
    for part in run.parts():
        arrivals = part.summary.get("measurement", {}).get("arrivals", {})
        count += int(arrivals.get("aborted_in_flight", 0) + arrivals.get("unfinished", 0))
        count += round(part.number("error_request_count") or 0)
    return count


def _means(runs: Sequence[PlotRun]) -> tuple[str, ...]:
    """A note where percentiles that are marked are those of several reports."""
    return ("p50 and p99 are the means of those of the repeats",) if any(len(run.parts()) > 1 for run in runs) else ()


def _percentiles(run: PlotRun, tag: str, axis: str) -> Iterator[Mark]:
    """The percentiles of the run's report; those of its requests where the report lacks them."""
    for percent in _MARKED:
        value = run.number(tag, f"p{percent}")
        if value is None:
            column = run.column(tag)
            value = float(np.percentile(column[np.isfinite(column)], percent))
        yield Mark(run.label, axis, value, f"p{percent}", shown(value, "ms"))


def _figure(
    title: str, x: Axis, y: Axis, series: Sequence[PlotSeries], marks: Sequence[Mark] = (), notes: tuple[str, ...] = ()
) -> Figure | None:
    return Figure(title, x, y, tuple(series), tuple(marks), notes=notes) if series else None
