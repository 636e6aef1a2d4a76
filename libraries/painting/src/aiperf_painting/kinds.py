"""Each kind of series, drawn into axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from aiperf import PlotSeries
from aiperf.sdk.columns import Floats
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from aiperf_painting.styles import FEW_POINTS, Style, Theme, name_of

_MOST_HATCHED = 60
"""Lanes whose bars are high enough for hatches and edges."""
_MOST_BARS = 150
"""Bars of a stage that are wide enough for hatches."""
_LANE = 0.4
"""Half the height of a bar in a lane."""


def draw(axes: Axes, series: PlotSeries, style: Style, theme: Theme, *, thin: float = 0.0) -> Any:
    """Draw the series; gives what stands for it in a legend, None where nothing does.

    thin: width of a bar below which it has no edges.
    """
    match series.kind:
        case "points":
            return _points(axes, series, style)
        case "bar":
            return _bars(axes, series, style, theme, thin)
        case "band":
            assert series.y_low is not None and series.y_high is not None
            axes.fill_between(series.x, series.y_low, series.y_high, color=style.colour, alpha=0.22, linewidth=0, zorder=2)
            return _joined(axes, series, style)
        case "error":
            return _errors(axes, series, style)
        case "span":
            return _spans(axes, series, style)
        case "heat":
            return _cells(axes, series, theme)
        case "lanes":
            return _lanes(axes, series, style, theme, thin)
        case _:
            return _joined(axes, series, style)


def _joined(axes: Axes, series: PlotSeries, style: Style) -> Line2D:
    marker = style.marker if len(series.x) <= FEW_POINTS and series.kind != "steps" else "none"
    look: dict[str, Any] = {"color": style.colour, "linestyle": style.dashes, "linewidth": 1.6, "zorder": 3}
    if series.kind == "steps":
        (line,) = axes.step(series.x, series.y, where="post", **look)
    else:
        (line,) = axes.plot(series.x, series.y, marker=marker, markersize=5, **look)
    if len(series.x) == 1:
        line.set_marker(style.marker)
    return line


def _points(axes: Axes, series: PlotSeries, style: Style) -> Line2D:
    few = style.large
    (line,) = axes.plot(
        series.x, series.y, linestyle="none", marker=style.marker, markersize=7.0 if few else 3.2, markeredgewidth=0,
        alpha=1 if few else 0.55, color=style.colour, zorder=3,
    )  # fmt: skip
    return Line2D([], [], linestyle="none", marker=style.marker, markersize=6, color=style.colour) if not few else line


def _bars(axes: Axes, series: PlotSeries, style: Style, theme: Theme, thin: float) -> Patch:
    low, high = series.x_low, series.x_high
    if low is None or high is None:
        steps = np.diff(np.unique(series.x))
        half = 0.4 * (float(steps.min()) if len(steps) else 1.0)
        low, high = series.x - half, series.x + half
    bottom = np.zeros(len(series.x)) if series.y_low is None else series.y_low
    axes.add_collection(_boxes(low, high, bottom, series.y, style, theme, thin), autolim=True)
    return _patch(style, theme)


def _boxes(
    left: Floats, right: Floats, bottom: Floats, top: Floats, style: Style, theme: Theme, thin: float
) -> PolyCollection:  # fmt: skip
    edges = np.where(right - left < thin, style.colour, theme.paper)  # of a thin bar its edges would hide it
    corners = _corners(left, right, bottom, top)
    boxes = PolyCollection(corners, facecolor=style.colour, edgecolor=edges.tolist(), linewidth=0.4, zorder=3)
    if style.hatch:
        boxes.set_hatch(style.hatch)
    return boxes


def _corners(left: Floats, right: Floats, bottom: Floats, top: Floats) -> Any:
    """(boxes, 4, 2) of the corners of boxes."""
    return np.stack([np.stack(each, axis=-1) for each in ((left, bottom), (left, top), (right, top), (right, bottom))], axis=1)


def _patch(style: Style, theme: Theme) -> Patch:
    return Patch(facecolor=style.colour, edgecolor=theme.paper, hatch=style.hatch, linewidth=0.4)


def _errors(axes: Axes, series: PlotSeries, style: Style) -> Any:
    def around(values: Floats, low: Floats | None, high: Floats | None) -> Any:
        return None if low is None or high is None else np.maximum(np.stack([values - low, high - values]), 0.0)

    return axes.errorbar(
        series.x, series.y, xerr=around(series.x, series.x_low, series.x_high),
        yerr=around(series.y, series.y_low, series.y_high), linestyle="none", marker=style.marker, markersize=6,
        color=style.colour, elinewidth=1.2, capsize=3, zorder=3,
    )  # fmt: skip


def _spans(axes: Axes, series: PlotSeries, style: Style) -> Patch:
    assert series.x_low is not None and series.x_high is not None
    for low, high in zip(series.x_low.tolist(), series.x_high.tolist(), strict=True):
        axes.axvspan(low, high, facecolor=style.colour, alpha=0.15, linewidth=0, zorder=1)
    return Patch(facecolor=style.colour, alpha=0.3)


def _cells(axes: Axes, series: PlotSeries, theme: Theme) -> None:
    ends = (series.x_low, series.x_high, series.y_low, series.y_high)
    left, right, bottom, top = (np.asarray(end, dtype=np.float64) for end in ends)
    corners = _corners(left, right, bottom, top)
    cells = PolyCollection(corners, array=series.values, cmap=theme.colour_map, linewidth=0, zorder=2)
    least = 0.0 if series.values is None else min(0.0, float(series.values.min()))
    cells.set_clim(vmin=least)
    axes.add_collection(cells, autolim=True)
    cells.set_label(name_of(series))


def _lanes(axes: Axes, series: PlotSeries, style: Style, theme: Theme, thin: float) -> Patch:
    assert series.x_low is not None and series.x_high is not None
    low = bool(series.y.max() >= _MOST_HATCHED)
    many = low or len(series.x) > _MOST_BARS
    look = style._replace(hatch="") if many else style
    half = 0.5 if low else _LANE
    boxes = _boxes(series.x_low, series.x_high, series.y - half, series.y + half, look, theme, thin)
    if many:
        boxes.set_linewidth(0)
    axes.add_collection(boxes, autolim=True)
    return _patch(look, theme)
