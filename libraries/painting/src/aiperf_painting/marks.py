"""Marks and references: lines across a picture, each with its words where they hide least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aiperf import Figure, PlotSeries
from aiperf.sdk.plot import Mark
from matplotlib.axes import Axes
from msgspec import Struct

from aiperf_painting.placing import Ground, box_at, home_of
from aiperf_painting.styles import Style, Theme, shown

MOST_MARKED = 4
"""Series of a picture whose marks have lines; of more the marks are in the numbers alone."""
_STYLES = ("--", ":", "-.")
_BEHIND, _ABOVE_BARS, _HALO = 2.0, 3.5, 2.4
"""Order of lines behind the data, and of those above bars; width of what parts these from the bars."""
_ASIDE, _APART = 3.0, 3.0
"""Points from a line to its words, and pixels between two words."""

_CLEAR = 2.5
"""Points around words that are free of points, too, as markers have a size."""


class _Line(Struct):
    """A line that is drawn, and its words.  needed: whether nothing else says them, as a legend does."""

    axis: str
    value: float
    words: str
    needed: bool


def marks_of(figure: Figure, series: PlotSeries) -> Iterator[tuple[Mark, str]]:
    """The marks of a series, each with its style of line."""
    for number, mark in enumerate(mark for mark in figure.marks if mark.series == series.name):
        yield mark, _STYLES[number % len(_STYLES)]


def reach(axes: Axes, second: Axes | None, figure: Figure) -> None:
    """Make the axes reach to marks and references."""
    marks = figure.marks if len(figure.series) <= MOST_MARKED else ()
    for axis, value in [*((mark.axis, mark.value) for mark in marks), *((each.axis, each.value) for each in figure.lines)]:
        home_of(axes, second, axis).update_datalim([(value, value)], updatex=axis == "x", updatey=axis != "x")


def draw_lines(axes: Axes, second: Axes | None, figure: Figure, chosen: Mapping[str, Style], look: Theme) -> list[_Line]:
    """A line for each mark and reference; gives what :func:`say_lines` writes beside them."""
    alone = len(figure.series) == 1
    found: list[_Line] = []
    for series in figure.series if len(figure.series) <= MOST_MARKED else ():
        colour = look.ink if alone else chosen[series.name].colour
        for mark, style in marks_of(figure, series):
            line = axes.axvline if mark.axis == "x" else axes.axhline
            line(mark.value, color=colour, linestyle=style, linewidth=1.1, alpha=0.8, zorder=_BEHIND)
            words = f"{mark.label} {mark.shown}" if alone else mark.label
            found.append(_Line(mark.axis, mark.value, words, alone))
    bars = any(series.kind in ("bar", "heat") for series in figure.series)
    for number, reference in enumerate(figure.lines):
        home = home_of(axes, second, reference.axis)
        line = home.axvline if reference.axis == "x" else home.axhline
        if bars:
            line(reference.value, color=look.paper, linewidth=_HALO, alpha=0.8, zorder=_ABOVE_BARS)
        order = _ABOVE_BARS + 0.1 if bars else _BEHIND
        line(reference.value, color=look.ink, linestyle=_STYLES[number % 3], linewidth=1.2, zorder=order)
        found.append(_Line(reference.axis, reference.value, f"{reference.label} {reference.shown}", True))
    return found


def say_lines(lines: list[_Line], axes: Axes, second: Axes | None, ground: Ground, look: Theme) -> None:
    """Write the words beside the lines; those that find no room are left out where the legend has them."""
    places = [_place(line, axes, second) for line in lines]
    aside = _ASIDE * ground.pixels_per_point
    for line, at in zip(lines, places, strict=True):
        (ground.across if line.axis == "x" else ground.up).append(at)
    for line, at in zip(lines, places, strict=True):
        text = axes.annotate(
            shown(line.words), (0, 0), xycoords="figure pixels", fontsize=9, color=look.ink, parse_math=False, zorder=5
        )
        text.set_in_layout(False)
        size = text.get_window_extent(ground.renderer)
        boxes = [*(_beside if line.axis == "x" else _along)(at, size.width, size.height, aside, ground.frame)]
        found = ground.best(box.padded(_CLEAR * ground.pixels_per_point) for box in boxes)
        if found is None and not line.needed:
            text.remove()
            continue
        number, hidden = found or (0, 1)
        ground.taken.append(boxes[number].padded(_APART))
        _put(text, line, boxes[number], home_of(axes, second, line.axis), at)
        if hidden:
            text.set_bbox({"facecolor": look.paper, "edgecolor": "none", "alpha": 0.85, "pad": 0.5})


def _place(line: _Line, axes: Axes, second: Axes | None) -> float:
    """The pixel at which a line stands on its axis."""
    home = home_of(axes, second, line.axis)
    point = home.transData.transform((line.value, home.get_ylim()[0]) if line.axis == "x" else (home.get_xlim()[0], line.value))
    return float(point[0] if line.axis == "x" else point[1])


def _beside(at: float, width: float, height: float, aside: float, frame: Any) -> Iterator[Any]:
    """Boxes right and left of a vertical line, from the bottom up."""
    y = frame.y0 + aside
    while True:
        yield box_at(at + aside, y, width, height)
        yield box_at(at - aside - width, y, width, height)
        y += height + _APART
        if y + height > frame.y1:
            return


def _along(at: float, width: float, height: float, aside: float, frame: Any) -> Iterator[Any]:
    """Boxes above and below a horizontal line, from its right end to the left."""
    x = frame.x1 - aside - width
    while True:
        yield box_at(x, at + aside, width, height)
        yield box_at(x, at - aside - height, width, height)
        x -= width / 3
        if x < frame.x0:
            return


def _put(text: Any, line: _Line, box: Any, home: Axes, at: float) -> None:
    """Fix the text in the box: to its value on the line's axis, and to a part of the axes on the other."""
    figure = home.get_figure()
    assert figure is not None  # these axes are part of one
    points = 72 / figure.dpi
    frame = home.get_window_extent()
    text.set_ha("left")
    text.set_va("bottom")
    if line.axis == "x":
        text.xycoords = home.get_xaxis_transform()
        text.xy, aside = (line.value, (box.y0 - frame.y0) / frame.height), (box.x0 - at, 0.0)
    else:
        text.xycoords = home.get_yaxis_transform()
        text.xy, aside = ((box.x0 - frame.x0) / frame.width, line.value), (0.0, box.y0 - at)
    text.anncoords = "offset points"
    text.xyann = (aside[0] * points, aside[1] * points)
