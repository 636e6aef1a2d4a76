"""Labels of points and of marks: each where it covers no other and no point, or left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from aiperf import Figure, PlotSeries
from aiperf.sdk.columns import Floats
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from aiperf_painting.styles import Theme, shown

_PLACES = (
    (6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
    (9, 0, "left", "center"), (-9, 0, "right", "center"), (0, 9, "center", "bottom"), (0, -9, "center", "top"),
    (14, 12, "left", "bottom"), (-14, 12, "right", "bottom"), (14, -12, "left", "top"), (-14, -12, "right", "top"),
)  # fmt: skip
"""Offsets in points from the point, and how the text stands there."""
_MOST_LABELS = 400
_FEW_LABELS = 12
"""Labels that are shown over a line where there is no other place."""
_APART, _STEP = 3.0, 4.0
"""Pixels between two labels, and between two points of a line that a label shall not cover."""
_MOST_POINTS = 1000
"""Of a series that labels keep clear of."""


def label_points(canvas: Canvas, axes: Axes, second: Axes | None, figure: Figure, look: Theme) -> None:
    """Write the labels of all points, in the order of the series, as many as there is room for."""
    labelled = [
        (_home(axes, second, series), x, y, label)
        for series in figure.series
        for x, y, label in zip(series.x.tolist(), series.y.tolist(), series.labels, strict=False)
        if label
    ][:_MOST_LABELS]
    if not labelled:
        return
    canvas.draw_without_rendering()  # the layout decides where points are
    renderer: Any = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    covered = _covered(axes, second, figure)
    taken = [text.get_window_extent(renderer) for text in axes.texts if text.get_visible()]
    for home, x, y, label in labelled:
        text = home.annotate(
            shown(label, 32), (x, y), xytext=(0, 0), textcoords="offset points", fontsize=8, color=look.ink,
            parse_math=False, zorder=6,
        )  # fmt: skip
        text.set_in_layout(False)
        box, hidden = _placed(text, renderer, frame, taken, covered)
        if box is None or (hidden and len(labelled) > _FEW_LABELS):
            text.remove()
        else:
            taken.append(box)
            if hidden:
                text.set_bbox({"facecolor": look.paper, "edgecolor": "none", "alpha": 0.75, "pad": 0.5})


def _home(axes: Axes, second: Axes | None, series: PlotSeries) -> Axes:
    return second if series.axis == "y2" and second is not None else axes


def _placed(text: Any, renderer: Any, frame: Any, taken: Sequence[Any], covered: Floats) -> tuple[Any, int]:
    """The box of the text at the place where it hides the fewest points, and how many; None where there is no room."""
    found: list[tuple[int, int, Any]] = []
    for number, place in enumerate(_PLACES):
        box = _moved(text, place, renderer)
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 4 and frame.y0 <= box.y0 and box.y1 <= frame.y1 + 4
        if inside and not any(box.overlaps(other) for other in taken):
            hidden = int(np.count_nonzero(((covered > (box.x0, box.y0)) & (covered < (box.x1, box.y1))).all(axis=1)))
            found.append((hidden, number, box))
            if not hidden:
                break
    if not found:
        return None, 0
    hidden, number, box = min(found, key=lambda each: each[:2])
    _moved(text, _PLACES[number], renderer)
    return box, hidden


def _moved(text: Any, place: tuple[int, int, str, str], renderer: Any) -> Any:
    """The text's box, and a little around it, at a place."""
    right, up, horizontal, vertical = place
    text.xyann = (right, up)
    text.set_ha(horizontal)
    text.set_va(vertical)
    return text.get_window_extent(renderer).padded(_APART)


def _covered(axes: Axes, second: Axes | None, figure: Figure) -> Floats:
    """Pixels (n, 2) of points, and of lines between them, every few pixels."""
    parts = [np.empty((0, 2))]
    for series in figure.series:
        if len(series.x) > _MOST_POINTS or series.kind in ("heat", "lanes", "span"):
            continue
        ends = np.asarray(_home(axes, second, series).transData.transform(np.column_stack([series.x, series.y])))
        parts.append(ends)
        if series.kind in ("line", "path", "band"):
            for begin, step in zip(ends[:-1], np.diff(ends, axis=0), strict=True):
                count = int(np.hypot(*step) // _STEP)
                parts.append(begin + np.outer(np.arange(1, count) / max(1, count), step))
    return np.concatenate(parts)


def thin_marks(canvas: Canvas, every: Sequence[Axes]) -> None:
    """Hide words beside marks that cover others, where the legend has the values."""
    canvas.draw_without_rendering()
    renderer: Any = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]
    taken: list[Any] = []
    for text in (text for axes in every for text in axes.texts):
        box = text.get_window_extent(renderer)
        if any(box.overlaps(other) for other in taken):
            text.set_visible(False)
        else:
            taken.append(box)
