"""A figure as a picture: its axes, marks, legend and caption, and the file."""

from __future__ import annotations

import itertools
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from aiperf import AiperfError, Axis, Figure, PlotSeries, atomic
from aiperf.sdk.figures import described
from aiperf.sdk.plot import Mark
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from aiperf_painting.kinds import draw
from aiperf_painting.labels import label_points, thin_marks
from aiperf_painting.styles import THEMES, Size, Style, Theme, inches_of, name_of, shown, styles

_MOST_NAMES, _TALL_INCHES = 12, 4.0
"""Names of a legend; half as many in a picture that is less tall."""
_MOST_INSIDE = 4
"""Names of a legend that stands among the data."""
_INSIDE_WIDE, _INSIDE_TALL = 0.35, 0.22
"""Most part of a picture's width and height that such a legend takes."""
_NAME_TALL_INCHES, _SIGN_INCHES, _COLUMN_GAP, _MOST_COLUMNS = 0.19, 0.5, 0.2, 4
"""Height of a name of a legend, length of the sign before it, space between columns of one above the data, and their number."""
_SMALL, _LARGE = 8.0, 9.0
"""Points of letters of the caption and of a legend outside the data, and of one inside."""
_LEAST_WIDTH = 20
"""Characters of a line of the caption."""
_PAD_INCHES = 0.07
"""Around the picture."""
_CAPTION_SHARE, _CAPTION_LINE_INCHES, _LEAST_CAPTION = 0.2, 0.135, 3
"""Most part of a picture's height that the caption takes, height of a line, and the lines that it has in any case."""
_NEAR_ZERO = 0.15
"""Part of a range below which an axis starts at zero."""
_HEADROOM = 0.04
"""Part of a range that is free above the highest value."""
_COUNTED = 10
"""Values up to which an axis of whole numbers has no fractions."""
_MOST_BESIDE = 26
"""Characters of the names of a legend that stands beside the data; with longer ones it stands above."""
_LANES_PER_INCH = 6.0
"""Lanes whose names stand beside them, by the height of the axis; of more, each second, third, … has one."""
_WIDE_INCHES = 8.0
"""Width from which there is room for a legend beside the data."""
_CHARACTERS_PER_INCH = 15.3
"""Of a line of the caption, at its size."""
_UP_CHARACTERS = 56
"""Of a line of the label of y."""
_LEAST_UP_CHARACTERS = 16
"""Of a line of a label of y that is broken."""
_UP_SHARE = 0.45
"""Least part of a picture's height that an axis has, where legend and caption are long."""
_UP_INCHES = 0.075
"""Length of a character of the label of y."""
_MARK_STYLES = ("--", ":", "-.")
_TITLE_CHARACTERS = 110
"""Of a title, or the label of an axis."""
_MOST_WORDS = 20_000
"""Characters of the text for those who don't see the picture."""


def picture(figure: Figure, path: Path, *, theme: str, caption: Sequence[str] = (), size: Size = Size()) -> Path:  # noqa: B008
    """Draw *figure* into *path*, a PNG or SVG by its ending, with the lines of *caption* and the figure's notes below it.

    theme: ``light`` or ``dark``.

    Raises:
        AiperfError: It can't be written.
    """
    look = THEMES[theme]
    canvas = Canvas(figsize=size.inches, dpi=size.dpi, facecolor=look.paper, layout="constrained")
    engine: Any = canvas.get_layout_engine()
    engine.set(w_pad=_PAD_INCHES, h_pad=_PAD_INCHES)
    axes = canvas.add_subplot()
    second = None if figure.y2 is None else axes.twinx()
    chosen = styles(figure, look)
    handles = [
        draw(second if series.axis == "y2" and second is not None else axes, series, chosen[series.name], look)
        for series in figure.series
    ]
    _reach(axes, second, figure)
    title = shown(figure.title, _TITLE_CHARACTERS)
    axes.set_title(title, color=look.ink, loc="left", fontsize=13, parse_math=False, wrap=True)
    _dress(axes, second, figure, look)
    _shade(canvas, axes, figure, look)
    _mark(axes, second, figure, chosen, look)
    _name(axes, figure, handles, look)
    if caption or figure.notes:
        _say_below(canvas, caption, figure.notes, size, look)
    every = [axes] if second is None else [axes, second]
    _fit(canvas, every, figure)
    if figure.marks and 1 < len(figure.series) <= _MOST_INSIDE:
        thin_marks(canvas, every)
    label_points(canvas, axes, second, figure, look)
    _write(canvas, figure, path, size)
    return path


def _say_below(canvas: Canvas, caption: Sequence[str], notes: Sequence[str], size: Size, look: Theme) -> None:
    """Write the caption and the notes; in shorter lines where letters are wide."""
    width = int(_CHARACTERS_PER_INCH * size.inches[0])
    lines = "\n".join(_caption(caption, notes, size, width))
    said = canvas.supxlabel(lines, color=look.ink, fontsize=_SMALL, x=0.01, ha="left", parse_math=False)
    room = size.inches[0] - 3 * _PAD_INCHES
    while (wide := max(inches_of(line, _SMALL) for line in said.get_text().split("\n"))) > room and width > _LEAST_WIDTH:
        width = int(min(width - 1, width * room / wide))
        said.set_text("\n".join(_caption(caption, notes, size, width)))


def _caption(caption: Sequence[str], notes: Sequence[str], size: Size, width: int) -> list[str]:
    """Lines below the picture of so many characters: of the caption as many as there is room for, and the notes."""
    parts, own = ([part for line in lines for part in textwrap.wrap(shown(line, 10 * width), width, subsequent_indent="   ")]
                  for lines in (caption, notes))  # fmt: skip
    most = max(_LEAST_CAPTION, int(_CAPTION_SHARE * size.inches[1] / _CAPTION_LINE_INCHES) - len(own))
    if len(parts) > most:
        parts = [*parts[: most - 1], f"– … {len(parts) - most + 1} further lines"]
    return parts + own


def _fit(canvas: Canvas, every: Sequence[Axes], figure: Figure) -> None:
    """Break the labels of y that are longer than their axis, and name as many lanes as there is room for."""
    room = _UP_SHARE * canvas.bbox.height / canvas.dpi
    longest = max(len(line) for axes in every for line in axes.get_ylabel().split("\n"))
    if longest * _UP_INCHES < room and not figure.lanes:
        return
    canvas.draw_without_rendering()  # the layout decides how long an axis is
    for axes in every:
        label, length = axes.yaxis.label, axes.get_window_extent().height
        tall = label.get_window_extent().height
        if tall > length > 0:
            lines = label.get_text().split("\n")
            width = max(_LEAST_UP_CHARACTERS, int(max(map(len, lines)) * length / tall) - 1)
            label.set_text(textwrap.fill(" ".join(lines), width))
    if figure.lanes:
        _name_lanes(every[0], figure, every[0].get_window_extent().height / canvas.dpi)


def _write(canvas: Canvas, figure: Figure, path: Path, size: Size) -> None:
    kind, words = path.suffix.removeprefix("."), shown(described(figure), _MOST_WORDS)
    about = {"Title": shown(figure.title), "Description": words} | ({"Date": None} if kind == "svg" else {})
    try:
        with atomic(path) as draft, rc_context({"svg.hashsalt": path.name}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            canvas.savefig(draft, format=kind, dpi=size.dpi, metadata=about)
            if kind == "svg":
                label = f"<svg role=\"img\" aria-label={quoteattr(words)} "
                Path(draft).write_text(Path(draft).read_text().replace("<svg ", label, 1))
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{path} can't be written: {why}", "choose another place with --output") from error


def _reach(axes: Axes, second: Axes | None, figure: Figure) -> None:
    """Make the axes reach to marks and references."""
    marks = figure.marks if len(figure.series) <= _MOST_INSIDE else ()
    for axis, value in [*((mark.axis, mark.value) for mark in marks), *((each.axis, each.value) for each in figure.lines)]:
        home = second if axis == "y2" and second is not None else axes
        home.update_datalim([(value, value)], updatex=axis == "x", updatey=axis != "x")


def _labelled(axis: Axis, limits: tuple[float, float]) -> str:
    """The axis's label; one that does not start at zero says where it starts."""
    low, label = min(limits), shown(axis.label, _TITLE_CHARACTERS)
    start = f"{low:.3g}" if low < 1000 else f"{low:,.0f}"
    return label if axis.log or low <= 0 else f"{label}; starts at {start}, not at 0"


def _dress(axes: Axes, second: Axes | None, figure: Figure, look: Theme) -> None:
    axes.set_facecolor(look.paper)
    if figure.x.log:
        axes.set_xscale("log")
    _dress_y(axes, figure.y, [series for series in figure.series if series.axis == "y"], look)
    if second is not None and figure.y2 is not None:
        _dress_y(second, figure.y2, [series for series in figure.series if series.axis == "y2"], look)
        second.spines["top"].set_visible(False)
    axes.autoscale_view(scaley=False)
    low, high = axes.get_xlim()
    if not figure.x.log and 0 < low < _NEAR_ZERO * (high - low):
        axes.set_xlim(left=0)
    axes.set_xlabel(_labelled(figure.x, axes.get_xlim()), color=look.ink, parse_math=False)
    axes.tick_params(colors=look.ink)
    axes.grid(visible=True, color=look.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(look.grid)
    if figure.lanes:
        _dress_lanes(axes, figure)


def _dress_y(axes: Axes, axis: Axis, series: Sequence[PlotSeries], look: Theme) -> None:
    if axis.log:
        axes.set_yscale("log")
        axes.autoscale_view(scalex=False)
    elif series:
        axes.autoscale_view(scalex=False)
        if all(one.kind != "heat" for one in series):
            columns = [values for one in series for name, values in one.columns() if name[0] == "y"]
            bottom = min(0.0, *(float(values.min()) for values in columns))
            top = axes.get_ylim()[1]
            highest = max(float(values.max()) for values in columns)
            axes.set_ylim(bottom, max(top, highest + _HEADROOM * (highest - bottom)))
            if highest - bottom <= _COUNTED and all((values == values.round()).all() for values in columns):
                locator: Any = axes.yaxis.get_major_locator()
                locator.set_params(integer=True)
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
    """Name every lane, or each second, third, …, so that an axis of so many inches has room."""
    step = -(-len(figure.lanes) // max(1, int(_LANES_PER_INCH * inches)))
    places = range(0, len(figure.lanes), step)
    axes.set_yticks([*places])
    lanes = [figure.lanes[place] for place in places]
    for text in axes.set_yticklabels(["  " * lane.depth + shown(lane.name, 24) for lane in lanes]):
        text.set_parse_math(False)
        text.set_fontsize(8)


def _shade(canvas: Canvas, axes: Axes, figure: Figure, look: Theme) -> None:
    """The bar of colours of a heat map."""
    if not any(series.kind == "heat" for series in figure.series):
        return
    bar = canvas.colorbar(axes.collections[0], ax=axes, pad=0.01)
    bar.set_label(shown(figure.shade), color=look.ink, parse_math=False)
    bar.ax.tick_params(colors=look.ink)
    bar.outline.set_visible(False)


def _marks_of(figure: Figure, series: PlotSeries) -> Iterator[tuple[Mark, str]]:
    """The marks of a series, each with its style of line."""
    for number, mark in enumerate(mark for mark in figure.marks if mark.series == series.name):
        yield mark, _MARK_STYLES[number % len(_MARK_STYLES)]


def _mark(axes: Axes, second: Axes | None, figure: Figure, chosen: dict[str, Style], look: Theme) -> None:
    """A line for each mark and reference across the picture, with its label; of several series the legend has the values."""
    alone, few = len(figure.series) == 1, len(figure.series) <= _MOST_INSIDE
    for series in figure.series:
        colour = look.ink if alone else chosen[series.name].colour
        marks = [*_marks_of(figure, series)]
        highest = max((mark.value for mark, _ in marks), default=0.0)
        for mark, style in marks if few else ():
            line = axes.axvline if mark.axis == "x" else axes.axhline
            line(mark.value, color=colour, linestyle=style, linewidth=1.1, alpha=0.8, zorder=2)
            text = f"{mark.label} {mark.shown}" if alone else mark.label
            _say(axes, mark.axis, mark.value, text, colour, look.paper, beyond=mark.value == highest)
    for number, reference in enumerate(figure.lines):
        home = second if reference.axis == "y2" and second is not None else axes
        line = home.axvline if reference.axis == "x" else home.axhline
        line(reference.value, color=look.ink, linestyle=_MARK_STYLES[number % 3], linewidth=1.2, zorder=2)
        _say(home, reference.axis, reference.value, f"{reference.label} {reference.shown}", look.ink, look.paper, beyond=True)


def _say(axes: Axes, axis: str, value: float, text: str, colour: str, paper: str, *, beyond: bool) -> None:
    """The text beside a line: on the side of larger values where *beyond*, so that two that are close stay apart."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": colour, "parse_math": False, "zorder": 5}
    style["bbox"] = {"facecolor": paper, "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
    if axis == "x":
        style |= {"ha": "left" if beyond else "right", "va": "bottom", "rotation": 90, "xytext": (3 if beyond else -3, 0)}
        said = axes.annotate(shown(text), (value, 0.03), xycoords=("data", "axes fraction"), **style)
    else:
        style |= {"ha": "right", "va": "bottom" if beyond else "top", "xytext": (0, 2 if beyond else -2)}
        said = axes.annotate(shown(text), (0.995, value), xycoords=("axes fraction", "data"), **style)
    said.set_in_layout(False)


def _name(axes: Axes, figure: Figure, handles: Sequence[Any], look: Theme) -> None:
    """A legend for two series or more, with their marks; very many are cut short."""
    drawn = zip(handles, figure.series, strict=True)
    named = [(handle, series) for handle, series in drawn if handle is not None and not _is_part(series, figure)]
    if len(named) < 2:
        return
    canvas = axes.get_figure()
    assert canvas is not None  # these axes are part of one
    most = _MOST_NAMES if canvas.bbox.height / canvas.dpi >= _TALL_INCHES else _MOST_NAMES // 2
    rest, labels, few = len(named) - most, [], len(figure.series) <= _MOST_INSIDE
    wide, tall = canvas.bbox.width / canvas.dpi, canvas.bbox.height / canvas.dpi
    for number, (_, series) in enumerate(named[:most], 1):
        marks = ", ".join(f"{mark.label} {mark.shown}" for mark, _ in _marks_of(figure, series) if few)
        side = " (right axis)" if series.axis == "y2" else ""
        more = f" and {rest} more" if number == most and rest > 0 else ""
        about = f"{side}: {marks}{more}" if marks else f"{side}{more}"
        labels.append(f"{name_of(series, wide - 2 * _SIGN_INCHES - inches_of(about, _SMALL))}{about}")
    solid = any(series.kind in ("bar", "lanes") for series in figure.series)
    long = _SIGN_INCHES + max(inches_of(label, _LARGE) for label in labels)
    large = long > _INSIDE_WIDE * wide or _NAME_TALL_INCHES * len(labels) > _INSIDE_TALL * tall
    outside = len(named) > _MOST_INSIDE or solid or figure.y2 is not None or large
    beside = max(map(len, labels)) <= _MOST_BESIDE and wide >= _WIDE_INCHES
    above = {"loc": "outside upper left", "ncols": _columns(labels, wide)}
    place: dict[str, Any] = {"loc": "best"} if not outside else {"loc": "outside right upper"} if beside else above
    holder: Any = canvas if outside else axes
    legend = holder.legend(
        [handle for handle, _ in named[:most]], labels, fontsize=_SMALL if outside else _LARGE, facecolor=look.paper,
        edgecolor="none", framealpha=0.85, **place,
    )  # fmt: skip
    legend.set_zorder(2.5)  # over the marks, and hiding no data
    for text in legend.get_texts():
        text.set_color(look.ink)
        text.set_parse_math(False)  # a directory's name may have a $


def _is_part(series: PlotSeries, figure: Figure) -> bool:
    """Whether the series has the intervals of another one of its group, which the legend names."""
    others = (other for other in figure.series if other is not series)
    return series.kind == "error" and bool(series.group) and any(other.group == series.group for other in others)


def _columns(labels: Sequence[str], inches: float) -> int:
    """Columns of a legend above the data, which are filled one after the other, in a picture of so many inches."""
    for columns in range(min(_MOST_COLUMNS, len(labels)), 1, -1):
        rows, more = divmod(len(labels), columns)
        ends = [0, *(rows * number + min(number, more) for number in range(1, columns + 1))]
        longest = [max(inches_of(label, _SMALL) for label in labels[first:end]) for first, end in itertools.pairwise(ends)]
        if sum(_SIGN_INCHES + length + _COLUMN_GAP for length in longest) < inches:
            return columns
    return 1
