"""Figures as pictures, with matplotlib: no browser, no screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aiperf import AiperfError, Figure, PlotSeries, atomic
from aiperf.sdk.plot import Axis, Mark
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

_INCHES = (10.0, 5.0)
_DPI = 160
"""Dots per inch of a picture."""
_MOST_NAMES = 12
_CAPTION_CHARACTERS = 165
"""Of a line of the caption, at its size."""
_MARK_STYLES = ("--", ":", "-.")
# Okabe and Ito's colours, which people who see few colours can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")


class _Theme:
    def __init__(self, paper: str, ink: str, grid: str) -> None:
        self.paper, self.ink, self.grid = paper, ink, grid


_THEMES: Mapping[str, _Theme] = MappingProxyType(
    {"light": _Theme("#ffffff", "#222222", "#dddddd"), "dark": _Theme("#1b1d21", "#e8e8e8", "#3a3d43")}
)


def picture(figure: Figure, path: Path, *, theme: str, caption: Sequence[str] = ()) -> Path:
    """Draw *figure* into *path*, a PNG or SVG by its ending, with the lines of *caption* below it.

    Raises:
        AiperfError: It can't be written.
    """
    colours = _THEMES[theme]
    canvas = Canvas(figsize=_INCHES, dpi=_DPI, facecolor=colours.paper, layout="constrained")
    axes = canvas.add_subplot()
    for number, series in enumerate(figure.series):
        _draw(axes, series, _COLOURS[number % len(_COLOURS)])
    axes.set_title(figure.title, color=colours.ink, loc="left", fontsize=13, parse_math=False)
    _dress(axes, figure, colours)
    _mark(axes, figure, colours)
    _name(axes, figure, colours)
    if caption:
        lines = [part for line in caption for part in textwrap.wrap(line, _CAPTION_CHARACTERS, subsequent_indent="   ")]
        canvas.supxlabel("\n".join(lines), color=colours.ink, fontsize=8, x=0.01, ha="left", parse_math=False)
    try:
        with atomic(path) as draft, rc_context({"svg.hashsalt": path.name}):  # so that the same figure is the same file
            kind = path.suffix.removeprefix(".")
            canvas.savefig(draft, format=kind, dpi=_DPI, metadata={"Date": None} if kind == "svg" else None)
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{path} can't be written: {why}", "choose another place with --output") from error
    return path


def _draw(axes: Axes, series: PlotSeries, colour: str) -> None:
    alone = len(series.x) == 1
    if series.kind == "points":
        size = 7.0 if alone else 3.0
        axes.plot(series.x, series.y, linestyle="none", marker="o", markersize=size, markeredgewidth=0,
                  alpha=1 if alone else 0.6, color=colour, zorder=3)  # fmt: skip
    elif series.kind == "steps":
        axes.step(series.x, series.y, where="post", color=colour, linewidth=1.6, zorder=3)
    else:
        axes.plot(series.x, series.y, color=colour, linewidth=1.6, zorder=3)


def _labelled(axis: Axis, limits: tuple[float, float]) -> str:
    """The axis's label; one that does not start at zero says where it starts."""
    low = limits[0]
    start = f"{low:.3g}" if low < 1000 else f"{low:,.0f}"
    return axis.label if axis.log or low <= 0 else f"{axis.label}; starts at {start}, not at 0"


def _dress(axes: Axes, figure: Figure, colours: _Theme) -> None:
    x, y = figure.x, figure.y
    axes.set_facecolor(colours.paper)
    if x.log:
        axes.set_xscale("log")
    if y.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, *(float(series.y.min()) for series in figure.series)))
    axes.set_xlabel(_labelled(x, axes.get_xlim()), color=colours.ink, parse_math=False)
    axes.set_ylabel(_labelled(y, axes.get_ylim()), color=colours.ink, parse_math=False)
    axes.tick_params(colors=colours.ink)
    axes.grid(visible=True, color=colours.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours.grid)


def _marks_of(figure: Figure, series: PlotSeries) -> Iterator[tuple[Mark, str]]:
    """The marks of a series, each with its style of line."""
    for number, mark in enumerate(mark for mark in figure.marks if mark.series == series.name):
        yield mark, _MARK_STYLES[number % len(_MARK_STYLES)]


def _mark(axes: Axes, figure: Figure, colours: _Theme) -> None:
    """A line for each mark across the picture, with its label; of several series the legend has the values."""
    alone = len(figure.series) == 1
    for number, series in enumerate(figure.series):
        colour = colours.ink if alone else _COLOURS[number % len(_COLOURS)]
        marks = [*_marks_of(figure, series)]
        highest = max((mark.value for mark, _ in marks), default=0.0)
        for mark, style in marks:
            line = axes.axvline if mark.axis == "x" else axes.axhline
            line(mark.value, color=colour, linestyle=style, linewidth=1.1, alpha=0.8, zorder=2)
            _say(axes, mark, f"{mark.label} {mark.shown}" if alone else mark.label, colour, beyond=mark.value == highest)


def _say(axes: Axes, mark: Mark, text: str, colour: str, *, beyond: bool) -> None:
    """The text beside a line: on the side of larger values where *beyond*, so that two that are close stay apart."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": colour, "parse_math": False, "zorder": 5}
    if mark.axis == "x":
        style |= {"ha": "left" if beyond else "right", "va": "bottom", "rotation": 90, "xytext": (3 if beyond else -3, 0)}
        axes.annotate(text, (mark.value, 0.03), xycoords=("data", "axes fraction"), **style)
    else:
        style |= {"ha": "right", "va": "bottom" if beyond else "top", "xytext": (0, 2 if beyond else -2)}
        axes.annotate(text, (0.995, mark.value), xycoords=("axes fraction", "data"), **style)


def _name(axes: Axes, figure: Figure, colours: _Theme) -> None:
    """A legend for two series or more, with their marks; very many are cut short."""
    handles = [line for line in axes.get_lines() if isinstance(line, Line2D)][: len(figure.series)]  # marks come behind them
    if len(handles) < 2:
        return
    rest = len(handles) - _MOST_NAMES
    labels = []
    for series in figure.series:
        marks = ", ".join(f"{mark.label} {mark.shown}" for mark, _ in _marks_of(figure, series))
        labels.append(f"{series.name}: {marks}" if marks else series.name)
    if rest > 0:
        labels[_MOST_NAMES - 1] = f"{labels[_MOST_NAMES - 1]} and {rest} more"
    legend = axes.legend(handles[:_MOST_NAMES], labels[:_MOST_NAMES], fontsize=9, loc="best", facecolor=colours.paper,
                         edgecolor="none", framealpha=0.85)  # fmt: skip
    legend.set_zorder(2.5)  # over the marks, and hiding no data
    for text in legend.get_texts():
        text.set_color(colours.ink)
        text.set_parse_math(False)  # a directory's name may have a $
