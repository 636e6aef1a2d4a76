"""Labels of points: each where it covers no other, or left out."""

from __future__ import annotations

from typing import Any

from aiperf import Figure
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from aiperf_painting.styles import Style, Theme, shown

_PLACES = ((6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
           (0, 14, "center", "bottom"), (0, -14, "center", "top"))  # fmt: skip
"""Offsets in points from the point, and how the text stands there."""
_MOST_LABELS = 400


def label_points(
    canvas: Canvas, axes: Axes, second: Axes | None, figure: Figure, chosen: dict[str, Style], look: Theme
) -> None:
    """Write the labels of all points, in the order of the series, as many as there is room for."""
    labelled = [
        (second if series.axis == "y2" and second is not None else axes, x, y, label)
        for series in figure.series
        for x, y, label in zip(series.x.tolist(), series.y.tolist(), series.labels, strict=False)
        if label
    ][:_MOST_LABELS]
    if not labelled:
        return
    canvas.draw_without_rendering()  # the layout decides where points are
    agg: Any = FigureCanvasAgg(canvas)
    renderer = agg.get_renderer()
    frame = axes.get_window_extent(renderer)
    taken: list[Any] = []
    for home, x, y, label in labelled:
        for right, up, horizontal, vertical in _PLACES:
            text = home.annotate(
                shown(label, 32), (x, y), xytext=(right, up), textcoords="offset points", ha=horizontal, va=vertical,
                fontsize=8, color=look.ink, parse_math=False, zorder=6,
            )  # fmt: skip
            text.set_in_layout(False)
            box = text.get_window_extent(renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 4 and frame.y0 <= box.y0 and box.y1 <= frame.y1 + 4
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
