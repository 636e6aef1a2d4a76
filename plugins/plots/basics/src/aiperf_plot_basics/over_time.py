"""The load as it went on: requests in flight, arrivals, failures, slots, and what the server says at the same time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.sdk.columns import Floats
from aiperf.sdk.figures import Lane
from aiperf.sdk.plot import RunTable
from aiperf_plotting.loads import by_load, first_of, first_repeat
from aiperf_plotting.single import timeline, token_rate
from aiperf_plotting.telemetry import named_series, sampled
from aiperf_plotting.times import END, START, in_flight, known, since, slots, windows

_DUE, _KIND, _CODE, _TTFT = "due_ns", "error_type", "error_code", "time_to_first_token"
_MOST_KINDS = 6
"""Kinds of failures that are told apart."""
_MOST_REQUESTS = 1000
"""Requests of a picture with slots."""
_COUNTED = re.compile(r"num_requests_(running|waiting)|num_(running|queue)_reqs")
_FULL = re.compile(r"cache_usage_perc|token_usage")
_UNSEEN = ("never_sent", "aborted_in_flight", "unfinished", "damaged", "unknown")
"""Outcomes of arrivals without a line in the per-request file."""


class RequestsInFlight(Plot):
    """How many requests were under way, failed ones too: the load that the server had."""

    title = "Requests in flight"
    columns = (START, END)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        series = []
        for run in by_load(runs):
            found = flying(first_repeat(run))
            if found is not None:
                series.append(PlotSeries(run.label, *found[:2], "steps"))
        axes = Axis("time (s)"), Axis("requests in flight")
        return Figure(self.title, *axes, tuple(series), notes=first_of(runs)) if series else None


def flying(run: PlotRun) -> tuple[Floats, Floats, float] | None:
    """Seconds since the first start, requests in flight from then on, and the first start in ns; None without requests."""
    table = run.requests((START, END), failed=True)
    starts, ends = table.numbers(START), table.numbers(END)
    rows = known(starts, ends)
    if not len(rows):
        return None
    begin = float(starts[rows].min())
    at, count = in_flight(starts[rows], ends[rows])
    return since(at, begin), count, begin


class ArrivalsAskedAndDelivered(Plot):
    """Arrivals that were due, and requests that were started, so far: a gap is load that came late, or never."""

    title = "Arrivals that were due, and requests that were started"
    most_runs = 1
    columns = (START, _DUE)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        due, starts = _instants(first_repeat(runs[0]))
        if not len(due) or not len(starts):
            return None
        begin = float(min(due.min(), starts.min()))
        series = []
        for name, at in (("due", due), ("started", starts)):
            moments, counts = np.unique(np.sort(at), return_counts=True)
            series.append(PlotSeries(name, since(moments, begin), np.cumsum(counts).astype(np.float64), "steps"))
        return Figure(self.title, Axis("time since the first arrival was due (s)"), Axis("requests so far"), tuple(series))


def _instants(run: PlotRun) -> tuple[Floats, Floats]:
    """Instants at which arrivals were due, and those at which requests were started, in ns.

    The ledger is read where arrivals are missing among the requests that ended.
    """
    arrivals = run.summary.get("measurement", {}).get("arrivals", {})
    ledger: RunTable | None = run.arrivals() if any(arrivals.get(name) for name in _UNSEEN) else None
    if ledger is not None and len(ledger):
        mine = np.array([phase == "profiling" for phase in ledger.texts("phase")], dtype=bool)
        due, starts = ledger.numbers(_DUE)[mine], ledger.numbers("started_ns")[mine]
    else:
        table = run.requests((START, _DUE), failed=True)
        due, starts = table.numbers(_DUE), table.numbers(START)
    scheduled = np.isfinite(due)
    return due[scheduled], starts[scheduled & np.isfinite(starts)]


class FailuresOverTime(Plot):
    """Failed requests by when they ended and how they failed."""

    title = "Failed requests over the run"
    most_runs = 1
    columns = (START, END, _KIND, _CODE)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        table = first_repeat(runs[0]).requests(self.columns, failed=True)
        starts, ends, codes, kinds = table.numbers(START), table.numbers(END), table.numbers(_CODE), table.texts(_KIND)
        failed = [row for row, kind in enumerate(kinds) if np.isfinite(codes[row]) or kind is not None]
        failed = [row for row in failed if np.isfinite(ends[row])]
        if not failed:
            return None
        names = [_kind(float(codes[row]), kinds[row]) for row in failed]
        usual = [name for name, _ in Counter(names).most_common(_MOST_KINDS)]
        at = since(ends[failed], float(np.nanmin(starts)))
        edges = windows(0.0, max(float(since(np.array([np.nanmax(ends)]), float(np.nanmin(starts)))[0]), 1e-6))
        bottom, series = np.zeros(len(edges) - 1), []
        for name in [*usual, *(["other"] if len(set(names)) > len(usual) else [])]:
            mine = at[[name == each or (name == "other" and each not in usual) for each in names]]
            top = bottom + np.histogram(mine, edges)[0]
            middle = (edges[:-1] + edges[1:]) / 2
            series.append(PlotSeries(name, middle, top, "bar", x_low=edges[:-1], x_high=edges[1:], y_low=bottom))
            bottom = top
        return Figure(self.title, Axis("ended after (s)"), Axis("failed requests"), tuple(series))


def _kind(code: float, kind: str | None) -> str:
    return " ".join(filter(None, (f"{code:.0f}" if np.isfinite(code) else "", kind or ""))) or "failed"


class RequestTimeline(Plot):
    """Requests in the slots of the client, each with its wait for the first token and its generation."""

    title = "Requests in flight, each in a slot"
    most_runs = 1
    columns = (START, END, _TTFT)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        starts, ends, waits = (first_repeat(runs[0]).column(name) for name in self.columns)
        rows = known(starts, ends, waits)
        rows = rows[ends[rows] >= starts[rows]]
        rows = rows[np.argsort(starts[rows], kind="stable")]
        if not len(rows):
            return None
        picked = rows[:_MOST_REQUESTS]
        notes = () if len(picked) == len(rows) else (f"the first {len(picked):,} of {len(rows):,} requests",)
        begin = float(starts[picked[0]])
        at, until = since(starts[picked], begin), since(ends[picked], begin)
        first = np.clip(at + waits[picked] / 1e3, at, until)
        places = slots(at, until)
        lanes = tuple(Lane(f"{number + 1}") for number in range(int(places.max()) + 1))
        return timeline(self.title, at, first, until, places.astype(np.float64), lanes, "slot", notes, picked)


class ServerRequestsOverTime(Plot):
    """The client's requests in flight above what the server says: how many run, how many wait, and how full its cache is."""

    title = "Requests in flight, and what the server says"
    most_runs = 1
    columns = (START, END)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        found = flying(first_repeat(runs[0]))
        if found is None:
            return None
        every = first_repeat(runs[0]).telemetry()
        gauges = [series for series in every if series.kind in ("gauge", "") and series.counts is None]
        counts = named_series((each for each in gauges if _COUNTED.search(each.name)), found[2])
        full = named_series((each for each in gauges if _FULL.search(each.name)), found[2])
        if not counts and not full:
            return None
        series = [PlotSeries("client: in flight", *found[:2], "steps")]
        series += [PlotSeries(f"server: {each.name}", each.at_s, each.values, points="sample") for each in counts]
        series += [PlotSeries(f"server: {each.name}", each.at_s, each.values, axis="y2", points="sample") for each in full]
        y2 = Axis("share of the cache in use") if full else None
        return Figure(self.title, Axis("time (s)"), Axis("requests"), tuple(series), y2=y2)


class GpuPowerOverTime(Plot):
    """Output tokens per second above the power that the GPUs draw."""

    title = "Output tokens per second, and power of the GPUs"
    most_runs = 1
    columns = (START, END, _TTFT, "output_sequence_length")

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        rate = token_rate(first_repeat(runs[0]))
        if rate is None:
            return None
        begin = float(np.nanmin(first_repeat(runs[0]).column(START)))
        beside = sampled(first_repeat(runs[0]), "nvidia_power_usage", begin)
        if not beside:
            return None
        tokens = PlotSeries("client: output tokens per second", since(rate[0], begin), rate[1], "steps")
        power = [PlotSeries(f"power: {each.name}", each.at_s, each.values, axis="y2", points="sample") for each in beside]
        axes = Axis("time (s)"), Axis("output tokens per second")
        return Figure(self.title, *axes, (tokens, *power), y2=Axis("power of a GPU (W)"))
