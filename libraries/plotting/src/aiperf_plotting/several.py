"""The reference's types of pictures of several runs: points joined by load, frontiers, intervals of repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from aiperf import Axis, Figure, PlotRun, PlotSeries
from aiperf.sdk.columns import Floats
from msgspec import Struct
from msgspec.structs import replace

from aiperf_plotting.loads import RepeatInterval, gpus, grouped, interval, load_label, load_unit
from aiperf_plotting.words import labelled, named

if TYPE_CHECKING:
    from aiperf_plotting.preset import Draw, Preset, Value

_PER_GPU = "output_token_throughput_per_gpu"
_FALLING = ("latency", "time_to_", "duration", "error", "wait")
"""Parts of tags of metrics of which less is better."""


class Placed(Struct, frozen=True):
    """A run's point, with the intervals of its repeats."""

    run: PlotRun
    x: RepeatInterval
    y: RepeatInterval


def _measured(run: PlotRun, value: Value, level: float) -> RepeatInterval | None:
    if value.metric != _PER_GPU:
        return interval(run, value.metric, value.statistic, level)
    return interval(run, "output_token_throughput", value.statistic, level, per=max(1, gpus(run)))


def _label(value: Value, runs: Sequence[PlotRun]) -> str:
    """The axis's label; without telemetry "per GPU" is the whole, and it says so."""
    if value.metric != _PER_GPU:
        return labelled(value.metric, value.statistic, runs)
    counts = {gpus(run) for run in runs}
    per = "per GPU" if 0 not in counts else "all GPUs" if counts == {0} else "per GPU, or all where their number is unknown"
    return f"output tokens per second, {value.statistic}, {per}"


def placed(preset: Preset, runs: Sequence[PlotRun]) -> dict[str, list[Placed]]:
    """The points of the runs with both values, by group, each group in the order of load."""
    found: dict[str, list[Placed]] = {}
    level = preset.ci_level
    every = [(run, _measured(run, preset.x, level), _measured(run, preset.y, level)) for run in runs]
    points = {id(run): Placed(run, x, y) for run, x, y in every if x is not None and y is not None}
    for group, members in grouped([run for run in runs if id(run) in points], by_model=preset.by_model).items():
        found[group] = [points[id(run)] for run in members]
    return found


def series_of(name: str, points: Sequence[Placed], labels: Sequence[str], group: str) -> list[PlotSeries]:
    """The points joined in their order, and intervals around those with repeats."""
    x, y = _means(points)
    role = points[0].run.role
    shared, names = group or name, _runs(points)
    made = [PlotSeries(name, x, y, "path", labels=tuple(labels), group=shared, role=role, points="run", runs=names)]
    repeated = [point for point in points if point.x.count > 1 or point.y.count > 1]
    if repeated:
        x, y = _means(repeated)
        left, right = (np.array([getattr(point.x, end) for point in repeated]) for end in ("low", "high"))
        bottom, top = (np.array([getattr(point.y, end) for point in repeated]) for end in ("low", "high"))
        ends, about, names = (left, right, bottom, top), f"{name}, intervals of repeats", _runs(repeated)
        made.append(PlotSeries(about, x, y, "error", *ends, group=shared, role=role, points="run", runs=names))
    return made


def _runs(points: Sequence[Placed]) -> tuple[str, ...]:
    return tuple(point.run.label for point in points)


def _means(points: Sequence[Placed]) -> tuple[Floats, Floats]:
    return np.array([point.x.mean for point in points]), np.array([point.y.mean for point in points])


def _labels(preset: Preset, points: Sequence[Placed], unit: str | None) -> list[str]:
    return [load_label(point.run, unit) if preset.labels == "load" else point.run.label for point in points]


def _scatter_line(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    groups, unit = placed(preset, runs), load_unit(runs)
    series = [
        one for group, points in groups.items() if points
        for one in series_of(group or "runs, by load", points, _labels(preset, points, unit), group)
    ]  # fmt: skip
    return _figure(preset, runs, series, f"{named(preset.y.metric).capitalize()} against {named(preset.x.metric)}")


def frontier(x: Floats, y: Floats, *, less_x: bool, less_y: bool) -> list[int]:
    """Places of the points that none beats in both, by x: one sweep from the best x; ties stay."""
    signed_x, signed_y = (x if less_x else -x), (y if less_y else -y)
    found: list[int] = []
    best = np.inf
    for place in np.lexsort((signed_y, signed_x)).tolist():
        if signed_y[place] <= best:
            best = float(signed_y[place])
            found.append(place)
    return sorted(found, key=lambda place: x[place])


def _falls(tag: str) -> bool:
    return "throughput" not in tag and any(part in tag for part in _FALLING)


def _pareto(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    groups, unit, series = placed(preset, runs), load_unit(runs), []
    for group, points in groups.items():
        if not points:
            continue
        x, y = _means(points)
        best = frontier(x, y, less_x=_falls(preset.x.metric), less_y=_falls(preset.y.metric))
        name, role = group or "runs", points[0].run.role
        labels = tuple(_labels(preset, points, unit))
        shared, names = group or "runs", _runs(points)
        series.append(PlotSeries(name, x, y, "points", labels=labels, group=shared, role=role, points="run", runs=names))
        series += series_of(name, points, labels, group)[1:]
        about = f"frontier: {group}" if group else "frontier"
        front = PlotSeries(about, x[best], y[best], "path", group=shared, role=role, points="run")
        series.append(replace(front, runs=tuple(names[place] for place in best)))
    title = f"{named(preset.y.metric).capitalize()} against {named(preset.x.metric)}: the frontier"
    return _figure(preset, runs, series, title)


def _uncertainty(preset: Preset, runs: Sequence[PlotRun]) -> Figure | None:
    groups, unit, series = placed(preset, runs), load_unit(runs), []
    for group, points in groups.items():
        repeated = [point for point in points if min(point.x.count, point.y.count) > 1]
        if repeated:
            series += series_of(group or "means, by load", repeated, _labels(preset, repeated, unit), group)
    figure = _figure(preset, runs, series, "Latency and throughput, with intervals of repeats")
    if figure is None:
        return None
    counts = sorted({point.x.count for points in groups.values() for point in points})
    repeats = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    note = f"Student's intervals of each axis alone at {preset.ci_level:.0%}, {repeats} runs each; they are no joint region"
    return replace(figure, notes=(*figure.notes, note))


def _figure(preset: Preset, runs: Sequence[PlotRun], series: Sequence[PlotSeries], title: str) -> Figure | None:
    if not series:
        return None
    x, y = preset.x_label or _label(preset.x, runs), preset.y_label or _label(preset.y, runs)
    unknown = _PER_GPU in (preset.x.metric, preset.y.metric) and not all(map(gpus, runs))
    notes = ("without telemetry of GPUs, which tells their number, the throughput is that of all",) if unknown else ()
    return Figure(preset.title or title, Axis(x), Axis(y), tuple(series), notes=notes)


DRAWN: Mapping[str, Draw] = {
    "scatter_line": _scatter_line, "pareto": _pareto, "latency_throughput_uncertainty": _uncertainty,
}  # fmt: skip
