"""The legend of a picture: inside where it hides no data, else beside or above."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from aiperf import Figure, PlotSeries
from matplotlib.axes import Axes

from aiperf_painting.marks import MOST_MARKED, marks_of
from aiperf_painting.styles import LARGE, SMALL, Theme, inches_of, is_part, name_of

_MOST_NAMES, _TALL_INCHES = 12, 4.0
"""Names of a legend; half as many in a picture that is less tall."""
_MOST_INSIDE = 4
"""Names of a legend that stands among the data."""
_INSIDE_WIDE, _INSIDE_TALL = 0.35, 0.22
"""Most part of a picture's width and height that such a legend takes."""
_NAME_TALL_INCHES, _SIGN_INCHES, _COLUMN_GAP, _MOST_COLUMNS = 0.19, 0.5, 0.2, 4
"""Height of a name of a legend, length of the sign before it, space between columns of one above the data, and their number."""
_MOST_BESIDE = 26
"""Characters of the names of a legend that stands beside the data; with longer ones it stands above."""
_MOST_ROWS = 3
"""Names above the data in one column; with more they are shortened for two columns."""
_WIDE_INCHES = 8.0
"""Width from which there is room for a legend beside the data."""


def name_series(axes: Axes, figure: Figure, handles: Sequence[Any], look: Theme, *, inside: bool) -> Any:
    """A legend for two series or more, with their marks; very many are cut short.  The legend that stands inside, or None.

    inside: whether it may stand among the data.
    """
    drawn = zip(handles, figure.series, strict=True)
    every = [(handle, series) for handle, series in drawn if handle is not None and not is_part(series, figure)]
    if len(every) < 2:
        return None
    canvas = axes.get_figure()
    assert canvas is not None  # these axes are part of one
    wide, tall = canvas.bbox.width / canvas.dpi, canvas.bbox.height / canvas.dpi
    named, labels = _labels(figure, every, wide, _MOST_NAMES if tall >= _TALL_INCHES else _MOST_NAMES // 2)
    solid = any(series.kind in ("bar", "lanes") for series in figure.series)
    long = _SIGN_INCHES + max(inches_of(label, LARGE) for label in labels)
    large = long > _INSIDE_WIDE * wide or _NAME_TALL_INCHES * len(labels) > _INSIDE_TALL * tall
    outside = not inside or len(labels) > _MOST_INSIDE or solid or figure.y2 is not None or large
    beside = max(map(len, labels)) <= _MOST_BESIDE and wide >= _WIDE_INCHES
    if outside and not beside and len(labels) > _MOST_ROWS and _columns(labels, wide) == 1:
        _, labels = _labels(figure, every, wide / 2, len(labels))
    above = {"loc": "outside upper left", "ncols": _columns(labels, wide)}
    place: dict[str, Any] = {"loc": "best"} if not outside else {"loc": "outside right upper"} if beside else above
    holder: Any = canvas if outside else axes
    legend = holder.legend(
        [handle for handle, _ in named], labels, fontsize=SMALL if outside else LARGE, facecolor=look.paper,
        edgecolor="none", framealpha=0.85, **place,
    )  # fmt: skip
    legend.set_zorder(2.5)  # over the marks, and hiding no data
    for text in legend.get_texts():
        text.set_color(look.ink)
        text.set_parse_math(False)  # a directory's name may have a $
    return None if outside else legend


def _labels(
    figure: Figure, named: Sequence[tuple[Any, PlotSeries]], wide: float, most: int
) -> tuple[Sequence[tuple[Any, PlotSeries]], list[str]]:  # fmt: skip
    """The series that have a name in the legend, *most* of them, and the names."""
    rest, labels, few = len(named) - most, [], len(figure.series) <= MOST_MARKED
    for number, (_, series) in enumerate(named[:most], 1):
        marks = ", ".join(f"{mark.label} {mark.shown}" for mark, _ in marks_of(figure, series) if few)
        side = " (right axis)" if series.axis == "y2" else ""
        more = f" and {rest} more" if number == most and rest > 0 else ""
        about = f"{side}: {marks}{more}" if marks else f"{side}{more}"
        labels.append(f"{name_of(series, wide - 2 * _SIGN_INCHES - inches_of(about, SMALL))}{about}")
    return named[:most], labels


def _columns(labels: Sequence[str], inches: float) -> int:
    """Columns of a legend above the data, which are filled one after the other, in a picture of so many inches."""
    for columns in range(min(_MOST_COLUMNS, len(labels)), 1, -1):
        rows, more = divmod(len(labels), columns)
        ends = [0, *(rows * number + min(number, more) for number in range(1, columns + 1))]
        longest = [max(inches_of(label, SMALL) for label in labels[first:end]) for first, end in itertools.pairwise(ends)]
        if sum(_SIGN_INCHES + length + _COLUMN_GAP for length in longest) < inches:
            return columns
    return 1
