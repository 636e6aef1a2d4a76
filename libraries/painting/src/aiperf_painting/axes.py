"""The axes of a picture: their limits, ticks, labels, and the names of lanes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from aiperf import Axis, Figure, PlotSeries
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from aiperf_painting.styles import Theme, inches_of, shown
from aiperf_painting.ticks import decade_ticks, plain_ticks

_NEAR_ZERO = 0.15
"""Part of a range below which an axis starts at zero."""
_HEADROOM, _LABELLED = 0.04, 0.09
"""Part of a range that is free above the highest value, and on all sides of points with labels."""
_COUNTED = 10
"""Values up to which an axis of whole numbers has no fractions."""
_ALONE = 2.0
"""Widths of a bar that is alone which are free on both sides of it."""
_LANES_PER_INCH = 6.0
"""Lanes whose names stand beside them, by the height of the axis; of more, each second, fifth, … has one."""
_UP_CHARACTERS, _LEAST_UP_CHARACTERS = 56, 16
"""Of a line of the label of y, and of one that is broken."""
_UP_SHARE = 0.45
"""Least part of a picture's height that an axis has, where legend and caption are long."""
_UP_INCHES = 0.075
"""Length of a character of the label of y."""
_ACROSS_SHARE, _LABEL_POINTS = 0.82, 10.0
"""Part of a picture's width that the label of x takes at most, and size of its letters."""
_TITLE_CHARACTERS = 110
"""Of a title, or the label of an axis."""
_TITLE_POINTS, _TITLE_ASIDE = 13.0, 1.2
"""Size of the letters of a title, and inches of a picture's width that it leaves free."""


def dress(axes: Axes, second: Axes | None, figure: Figure, look: Theme) -> None:
    """Give the axes their title, limits, ticks and labels."""
    canvas = axes.get_figure()
    assert canvas is not None  # these axes are part of one
    wide = canvas.bbox.width / canvas.dpi
    title = _broken(shown(figure.title, _TITLE_CHARACTERS), _TITLE_POINTS, wide - _TITLE_ASIDE)
    axes.set_title(title, color=look.ink, loc="left", fontsize=_TITLE_POINTS, parse_math=False)
    axes.set_facecolor(look.paper)
    if any(any(series.labels) for series in figure.series):
        axes.margins(x=_LABELLED)
    _dress_x(axes, figure, look, wide)
    _dress_y(axes, figure.y, [series for series in figure.series if series.axis == "y"], look)
    if second is not None and figure.y2 is not None:
        _dress_y(second, figure.y2, [series for series in figure.series if series.axis == "y2"], look)
        second.spines["top"].set_visible(False)
    axes.tick_params(colors=look.ink)
    axes.grid(visible=True, color=look.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(look.grid)
    if figure.lanes:
        _dress_lanes(axes, figure)


def _broken(text: str, points: float, inches: float) -> str:
    """The text in lines of so many inches."""
    long = inches_of(text, points)
    return text if long <= inches else textwrap.fill(text, max(20, int(len(text) * inches / long)))


def _labelled(axis: Axis, limits: tuple[float, float]) -> str:
    """The axis's label; one that does not start at zero says where it starts."""
    low, label = min(limits), shown(axis.label, _TITLE_CHARACTERS)
    start = f"{low:.3g}" if low < 1000 else f"{low:,.0f}"
    return label if axis.log or low <= 0 else f"{label}; starts at {start}, not at 0"


def _values(series: Sequence[PlotSeries], letter: str) -> list[Any]:
    """Columns of the series on an axis."""
    return [values for one in series for name, values in one.columns() if name[0] == letter and name != "values"]


def _dress_x(axes: Axes, figure: Figure, look: Theme, wide: float) -> None:
    if figure.x.log:
        axes.set_xscale("log")
    axes.autoscale_view(scaley=False)
    columns = _values(figure.series, "x")
    if figure.x.log:
        decade_ticks(axes.xaxis, *axes.get_xlim())
    else:
        low, high = min(float(values.min()) for values in columns), max(float(values.max()) for values in columns)
        if low == high:
            axes.set_xlim(*((-0.05, 1.0) if low == 0 else sorted((0.0, 2 * low))))
        elif _alone(figure.series, "x", low, high):
            axes.set_xlim(*_around(low, high))
        else:
            low, high = axes.get_xlim()
            if 0 < low < _NEAR_ZERO * (high - low):
                axes.set_xlim(left=0)
        plain_ticks(axes.xaxis, whole=_whole(columns, *axes.get_xlim()))
    label = _broken(_labelled(figure.x, axes.get_xlim()), _LABEL_POINTS, _ACROSS_SHARE * wide)
    axes.set_xlabel(label, color=look.ink, parse_math=False)


def _alone(series: Sequence[PlotSeries], letter: str, low: float, high: float) -> bool:
    """Whether all there is from *low* to *high* is one bar or cell."""
    ends = [(getattr(one, f"{letter}_low"), getattr(one, f"{letter}_high")) for one in series if one.kind in ("bar", "heat")]
    return bool(ends) and len(ends) == len(series) and all(
        begin is not None and end is not None and (begin == low).all() and (end == high).all() for begin, end in ends
    )  # fmt: skip


def _around(low: float, high: float) -> tuple[float, float]:
    """Limits with room on both sides; none below zero where nothing is."""
    aside = _ALONE * (high - low)
    return (max(0.0, low - aside) if low >= 0 else low - aside), high + aside


def _whole(columns: Sequence[Any], low: float, high: float) -> bool:
    """Whether an axis shows a few whole numbers alone, and has no fractions."""
    return high - low <= _COUNTED + 1 and all((values == values.round()).all() for values in columns)


def _dress_y(axes: Axes, axis: Axis, series: Sequence[PlotSeries], look: Theme) -> None:
    columns = _values(series, "y")
    if axis.log:
        axes.set_yscale("log")
        axes.autoscale_view(scalex=False)
        decade_ticks(axes.yaxis, *axes.get_ylim())
    elif series:
        axes.autoscale_view(scalex=False)
        lowest, highest = (float(pick([pick(values) for values in columns])) for pick in (np.min, np.max))
        if all(one.kind != "heat" for one in series):
            bottom, top = min(0.0, lowest), axes.get_ylim()[1]
            room = _LABELLED if any(any(one.labels) for one in series) else _HEADROOM
            top = max(top, highest + room * (highest - bottom))
            axes.set_ylim(bottom, top if highest > bottom else bottom + 1)
        elif _alone(series, "y", lowest, highest):
            axes.set_ylim(*_around(lowest, highest))
        elif 0 < (low := axes.get_ylim()[0]) < _NEAR_ZERO * (axes.get_ylim()[1] - low):
            axes.set_ylim(bottom=0)
        plain_ticks(axes.yaxis, whole=_whole(columns, *axes.get_ylim()))
    label = textwrap.fill(_labelled(axis, axes.get_ylim()), _UP_CHARACTERS)
    axes.set_ylabel(label, color=look.ink, parse_math=False)
    axes.tick_params(colors=look.ink)
    for spine in axes.spines.values():
        spine.set_color(look.grid)


def _dress_lanes(axes: Axes, figure: Figure) -> None:
    axes.set_ylim(len(figure.lanes) - 0.5, -0.5)
    canvas = axes.get_figure()
    assert canvas is not None  # these axes are part of one
    _name_lanes(axes, figure, canvas.bbox.height / canvas.dpi / 2)
    axes.grid(visible=False, axis="y")


def _name_lanes(axes: Axes, figure: Figure, inches: float) -> None:
    """Name every lane, or each second, fifth, tenth, …, so that an axis of so many inches has room."""
    least = -(-len(figure.lanes) // max(1, int(_LANES_PER_INCH * inches)))
    power = 10 ** (len(str(least)) - 1)
    step = next(part * power for part in (1, 2, 5, 10) if part * power >= least)
    places = range(0, len(figure.lanes), step)
    axes.set_yticks([*places])
    lanes = [figure.lanes[place] for place in places]
    for text in axes.set_yticklabels(["  " * lane.depth + shown(lane.name, 24) for lane in lanes]):
        text.set_parse_math(False)
        text.set_fontsize(8)


def shade(canvas: Canvas, axes: Axes, figure: Figure, look: Theme) -> None:
    """The bar of colours of a heat map."""
    cells = next((series for series in figure.series if series.kind == "heat"), None)
    if cells is None or cells.values is None:
        return
    bar = canvas.colorbar(axes.collections[0], ax=axes, pad=0.01)
    whole = bool((cells.values == cells.values.round()).all())
    bar.locator = MaxNLocator(6, integer=whole)
    plain_ticks(bar.ax.yaxis, whole=False)
    bar.update_ticks()
    bar.set_label(shown(figure.shade), color=look.ink, parse_math=False)
    bar.ax.tick_params(colors=look.ink)
    bar.outline.set_visible(False)


def fit(canvas: Canvas, every: Sequence[Axes], figure: Figure) -> bool:
    """Break the labels of y that are longer than their axis, and name as many lanes as there is room for.

    Gives whether the layout was made, and stands.
    """
    room = _UP_SHARE * canvas.bbox.height / canvas.dpi
    longest = max(len(line) for axes in every for line in axes.get_ylabel().split("\n"))
    if longest * _UP_INCHES < room and not figure.lanes:
        return False
    canvas.draw_without_rendering()  # the layout decides how long an axis is
    stands = not figure.lanes
    for axes in every:
        label, length = axes.yaxis.label, axes.get_window_extent().height
        tall = label.get_window_extent().height
        if tall > length > 0:
            lines = label.get_text().split("\n")
            width = max(_LEAST_UP_CHARACTERS, int(max(map(len, lines)) * length / tall) - 1)
            label.set_text(textwrap.fill(" ".join(lines), width))
            stands = False
    if figure.lanes:
        _name_lanes(every[0], figure, every[0].get_window_extent().height / canvas.dpi)
    return stands
