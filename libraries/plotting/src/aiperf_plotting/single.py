"""The reference's types of pictures of one run: requests, slices and telemetry over time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from aiperf import Axis, Figure, PlotRun, PlotSeries
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.figures import Lane, ReferenceLine
from msgspec.structs import replace

from aiperf_plotting.loads import first_of, first_repeat
from aiperf_plotting.telemetry import sampled
from aiperf_plotting.times import END, START, in_flight, known, rolling, since, windows
from aiperf_plotting.words import labelled, named, shown, unit_of

if TYPE_CHECKING:
    from aiperf_plotting.preset import Draw, Preset

_TTFT, _TOKENS = "time_to_first_token", "output_sequence_length"
_NS_PER_MS = 1e6
_ROLLING_REQUESTS = 10
"""The window of rolling percentiles."""
_PERCENTS = (50.0, 95.0, 99.0)
MOST_ROWS = 200
"""Requests that have a lane each."""
_TIMES = {"request_start_ns", "time", "timestamp", "timestamp_s"}


def columns_of(preset: Preset) -> tuple[str, ...]:
    """Columns of requests that the picture reads."""
    if preset.type == "timeslice":
        return ()
    if preset.type in ("area", "dual_axis") or preset.y.metric in _THROUGHPUTS:
        return (START, END, _TTFT, _TOKENS) if preset.y.metric in _THROUGHPUTS else (START, preset.y.metric)
    if preset.type == "request_timeline":
        return (START, END, _TTFT)
    return (START, preset.y.metric, *(() if preset.x.metric in {"request_number", *_TIMES} else (preset.x.metric,)))


_THROUGHPUTS = frozenset(("throughput", "dispersed_throughput", "output_token_throughput", "throughput_tokens_per_sec"))
"""Names of output tokens per second over time, each request's tokens spread over its generation."""


def _across(run: PlotRun, metric: str) -> tuple[Floats, str]:
    """Values on the axis of x for each request, and the label."""
    starts = run.column(START)
    if metric == "request_number":
        numbers = np.full(len(starts), np.nan)
        rows = known(starts)
        numbers[rows[np.argsort(starts[rows], kind="stable")]] = np.arange(1.0, len(rows) + 1)
        return numbers, "request, in the order of starts"
    if metric in _TIMES:
        return since(starts, float(np.nanmin(starts))) if known(starts).size else starts, "started after (s)"
    return run.column(metric), labelled(metric, "", [run])


def _each(preset: Preset, run: PlotRun) -> tuple[Floats, Floats, Ints, str]:
    """x and y of the requests with both, in the order of x, their rows, and the label of x."""
    x, label = _across(run, preset.x.metric)
    y = run.column(preset.y.metric)
    rows = known(x, y) if len(x) == len(y) else np.empty(0, dtype=np.int64)
    rows = rows[np.argsort(x[rows], kind="stable")]
    return x[rows], y[rows], rows, label


def _titled(preset: Preset, words: str) -> str:
    return preset.title or words


def _scatter(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    series, label = [], ""
    for run in runs:
        x, y, rows, found = _each(preset, first_repeat(run))
        if len(x):
            series.append(PlotSeries(run.label, x, y, "points", points="request", rows=rows))
            label = found
    title = _titled(preset, f"{named(preset.y.metric).capitalize()} of each request")
    return _figure(preset, runs, title, label, labelled(preset.y.metric, "", runs), series)


def _scatter_with_percentiles(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    series, label = [], ""
    for run in runs:
        x, y, rows, found = _each(preset, first_repeat(run))
        if len(x):
            label, name = found, "" if len(runs) == 1 else f"{run.label}, "
            series.append(PlotSeries(f"{name}each request", x, y, "points", group=run.label, points="request", rows=rows))
            for percent, values in zip(_PERCENTS, rolling(y, _ROLLING_REQUESTS, _PERCENTS), strict=True):
                series.append(PlotSeries(f"{name}p{percent:g} of the last {_ROLLING_REQUESTS}", x, values, "line"))
    title = _titled(preset, f"{named(preset.y.metric).capitalize()} of each request, and percentiles of the last ten")
    return _figure(preset, runs, title, label, labelled(preset.y.metric, "", runs), series)


def _percentile_bands(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    series, label = [], ""
    for run in runs[:1]:
        x, y, _, label = _each(preset, first_repeat(run))
        if len(x):
            edges = windows(float(x[0]), float(x[-1]))
            places = np.searchsorted(edges, x, side="right") - 1
            parts = [(edge, y[places == place]) for place, edge in enumerate(edges[:-1])]
            found = [(edge, *np.percentile(part, _PERCENTS)) for edge, part in parts if len(part)]
            at, middle, high, top = (np.array(column) for column in zip(*found, strict=True))
            at = at + (edges[1] - edges[0]) / 2
            series = [PlotSeries("p50 to p95", at, middle, "band", y_low=middle, y_high=high),
                      PlotSeries("p95 to p99", at, high, "band", y_low=high, y_high=top)]  # fmt: skip
    title = _titled(preset, f"Percentiles of the {named(preset.y.metric)}")
    return _figure(preset, runs, title, label, labelled(preset.y.metric, "", runs), series)


def token_rate(run: PlotRun) -> tuple[Floats, Floats] | None:
    """Instants in ns and output tokens per second from then on: each answer's tokens spread from its first token to its end."""
    starts, ends, waits, tokens = (run.column(name) for name in (START, END, _TTFT, _TOKENS))
    rows = known(starts, ends, waits, tokens)
    begins = starts[rows] + waits[rows] * _NS_PER_MS
    rows, begins = rows[ends[rows] > begins], begins[ends[rows] > begins]
    if not len(rows):
        return None
    return in_flight(begins, ends[rows], tokens[rows] / ((ends[rows] - begins) / 1e9))


def _area(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    series = []
    for run in runs:
        found = token_rate(first_repeat(run))
        if found is not None:
            begin = float(np.nanmin(first_repeat(run).column(START)))
            series.append(PlotSeries(run.label, since(found[0], begin), found[1], "steps"))
    title = _titled(preset, "Output tokens per second, each answer's spread over its generation")
    return _figure(preset, runs, title, "time (s)", "output tokens per second", series)


def _request_timeline(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    run = first_repeat(runs[0])
    starts, ends, waits = (run.column(name) for name in (START, END, _TTFT))
    rows = known(starts, ends, waits)
    rows = rows[ends[rows] >= starts[rows]]
    if not len(rows):
        return None
    rows = rows[np.argsort(starts[rows], kind="stable")]
    step = -(-len(rows) // MOST_ROWS)
    picked = rows[::step]
    notes = () if step == 1 else (f"one request of {step}, by its start: {len(picked):,} of {len(rows):,}",)
    begin = float(starts[rows[0]])
    at, until = since(starts[picked], begin), since(ends[picked], begin)
    first = np.clip(at + waits[picked] / 1e3, at, until)
    lanes = tuple(Lane(f"{number + 1}") for number in range(0, len(rows), step))
    title = _titled(preset, "Requests, each with the time to its first token and its generation")
    places = np.arange(float(len(picked)))
    return timeline(title, at, first, until, places, lanes, "request, in the order of starts", notes, picked)


def timeline(
    title: str, at: Floats, first: Floats, until: Floats, lane: Floats, lanes: tuple[Lane, ...], label: str,
    notes: tuple[str, ...] = (), rows: Ints | None = None,
) -> Figure:  # fmt: skip
    """Requests as bars in lanes, from *at* over *first*, the first token, to *until*, in s."""
    stages = (("to the first token", at, first), ("generation", first, until))
    series = tuple(
        PlotSeries(name, (low + high) / 2, lane, "lanes", x_low=low, x_high=high, points="request", rows=rows)
        for name, low, high in stages
    )
    return Figure(title, Axis("time since the first start (s)"), Axis(label), series, lanes=lanes, notes=notes)


def _timeslice(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    run, tag, stat = first_repeat(runs[0]), preset.y.metric, preset.y.statistic
    slices = [each for each in run.slices() if isinstance(each.get(tag), Mapping) and _number(each[tag].get(stat)) is not None]
    if not slices:
        return None
    begin = float(slices[0]["start_ns"])
    low, high = (since(np.array([float(each[end]) for each in slices]), begin) for end in ("start_ns", "end_ns"))
    values = np.array([float(each[tag][stat]) for each in slices])
    spreads = np.array([_number(each[tag].get("std")) or 0.0 for each in slices])
    mean, spread = run.number(tag, stat), run.number(tag, "std")
    lines: tuple[ReferenceLine, ...] = ()
    outside = np.zeros(len(values), dtype=bool)
    if mean is not None:
        lines = (ReferenceLine("y", mean, f"{stat} of the run", shown(mean, unit_of(tag, runs))),)
        if spread is not None:
            outside = np.abs(values - mean) > spread + spreads
    names = {False: "slices", True: "outside mean ± (std of the run + std of the slice)"}
    series = [
        PlotSeries(name, (low[rows] + high[rows]) / 2, values[rows], "bar", x_low=low[rows], x_high=high[rows], points="slice")
        for state, name in names.items() if len(rows := np.flatnonzero(outside == state))
    ]  # fmt: skip
    title = _titled(preset, f"{named(tag).capitalize()} by time slice")
    figure = _figure(preset, runs, title, "time since the first slice (s)", labelled(tag, stat, runs), series, lines)
    if figure is None or slices[-1].get("is_complete", True):
        return figure
    return replace(figure, notes=(*figure.notes, f"the last slice is not whole: it has {high[-1] - low[-1]:.2g} s"))


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def _histogram(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    x, y, _, label = _each(preset, first_repeat(runs[0]))
    if not len(x):
        return None
    edges = windows(float(x[0]), float(x[-1]), 30)
    places = np.searchsorted(edges, x, side="right") - 1
    counts = np.bincount(places, minlength=len(edges) - 1)
    full = np.flatnonzero(counts)
    means = np.bincount(places, weights=y, minlength=len(edges) - 1)[full] / counts[full]
    low, high = edges[full], edges[full + 1]
    series = [PlotSeries(runs[0].label, (low + high) / 2, means, "bar", x_low=low, x_high=high)]
    title = _titled(preset, f"Mean {named(preset.y.metric)} by window")
    return _figure(preset, runs, title, label, labelled(preset.y.metric, "mean of a window", runs), series)


def _dual_axis(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    run, second = first_repeat(runs[0]), preset.y2
    if second is None:
        return None
    if preset.y.metric in _THROUGHPUTS:
        found = token_rate(run)
        first_label, kind = "output tokens per second", "steps"
    else:
        x, y, _, _ = _each(preset, run)
        starts = run.column(START)
        found = (x * 1e9 + np.nanmin(starts), y) if len(x) else None
        first_label, kind = labelled(preset.y.metric, "", runs), "points"
    begin = np.nanmin(run.column(START)) if len(run.column(START)) else np.nan
    beside = sampled(run, second.metric, float(begin))
    if found is None or not beside:
        return None
    unit = next((series.unit for series in beside if series.unit), "")
    more = [PlotSeries(series.name, series.at_s, series.values, "line", axis="y2", points="sample") for series in beside]
    main = PlotSeries(first_label, since(found[0], float(begin)), found[1], kind)
    y2 = Axis(f"{named(second.metric)} ({unit})" if unit else named(second.metric))
    title = _titled(preset, f"{first_label.capitalize()}, and {named(second.metric)}")
    return Figure(title, Axis(preset.x_label or "time (s)"), Axis(preset.y_label or first_label), (main, *more), y2=y2)


def _figure(
    preset: Preset, runs: Sequence[PlotRun], title: str, x: str, y: str, series: Sequence[PlotSeries],
    lines: tuple[ReferenceLine, ...] = (),
) -> Figure | None:  # fmt: skip
    if not series:
        return None
    axes = Axis(preset.x_label or x), Axis(preset.y_label or y)
    return Figure(title, *axes, tuple(series), lines=lines, notes=first_of(runs))


DRAWN: Mapping[str, Draw] = {
    "scatter": _scatter, "scatter_with_percentiles": _scatter_with_percentiles, "area": _area,
    "request_timeline": _request_timeline, "timeslice": _timeslice, "histogram": _histogram,
    "percentile_bands": _percentile_bands, "dual_axis": _dual_axis,
}  # fmt: skip
