"""Where a text may stand in a picture: inside the axes, on no other text, and over as few of the data as can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from aiperf import Figure, PlotSeries
from aiperf.sdk.columns import Floats
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.transforms import Bbox

_STEP = 4.0
"""Pixels between two points of a line that texts shall not cover."""
_MOST_POINTS = 1000
"""Of a curve whose points are so far apart that the stretches between them count."""
_BEYOND = 4.0
"""Pixels that a text may reach over the axes."""
_LINE_HIDES = 3
"""Points that a line of a mark counts for."""


class Ground:
    """The pixels of a picture that texts keep clear of; the layout must be done.

    taken: boxes of the texts that stand.  across, up: pixels of vertical and horizontal lines.
    """

    def __init__(self, canvas: Canvas, axes: Axes, second: Axes | None, figure: Figure) -> None:
        self.renderer: Any = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]
        self.frame: Any = axes.get_window_extent(self.renderer)
        self.pixels_per_point: float = canvas.dpi / 72
        self.taken: list[Any] = []
        self.across: list[float] = []
        self.up: list[float] = []
        self._points = _points(axes, second, figure)
        self._boxes = _boxes(axes, second, figure)

    def hidden(self, box: Any) -> int:
        """How much of the data a text in the box would hide: points, and bars."""
        low, high = (box.x0, box.y0), (box.x1, box.y1)
        points = np.count_nonzero(((self._points > low) & (self._points < high)).all(axis=1))
        left, bottom, right, top = self._boxes
        bars = np.count_nonzero((left < box.x1) & (right > box.x0) & (bottom < box.y1) & (top > box.y0))
        lines = sum(box.x0 < at < box.x1 for at in self.across) + sum(box.y0 < at < box.y1 for at in self.up)
        return int(points + bars + _LINE_HIDES * lines)

    def best(self, boxes: Iterable[Any]) -> tuple[int, int] | None:
        """Number of the first box that hides least, and how much; None where none is free of texts and in the axes."""
        found: tuple[int, int] | None = None
        for number, box in enumerate(boxes):
            if not self._inside(box) or any(box.overlaps(other) for other in self.taken):
                continue
            hidden = self.hidden(box)
            if found is None or hidden < found[1]:
                found = number, hidden
            if not hidden:
                break
        return found

    def _inside(self, box: Any) -> bool:
        frame = self.frame
        right, top = frame.x1 + _BEYOND, frame.y1 + _BEYOND
        return bool(frame.x0 <= box.x0 and box.x1 <= right and frame.y0 <= box.y0 and box.y1 <= top)


def box_at(x: float, y: float, width: float, height: float) -> Any:
    """The box with its lower left corner at the pixel (x, y)."""
    return Bbox.from_bounds(x, y, width, height)


def home_of(axes: Axes, second: Axes | None, axis: str) -> Axes:
    """The axes on which values of the axis ``x``, ``y`` or ``y2`` stand."""
    return second if axis == "y2" and second is not None else axes


def _points(axes: Axes, second: Axes | None, figure: Figure) -> Floats:
    """Pixels (n, 2) of points, and of lines between them, every few pixels."""
    parts = [np.empty((0, 2))]
    for series in figure.series:
        if series.kind in ("heat", "lanes", "span", "bar"):
            continue
        x, y = _corners(series)
        ends = np.asarray(home_of(axes, second, series.axis).transData.transform(np.column_stack([x, y])))
        parts.append(ends)
        if series.kind in ("line", "path", "band", "steps") and len(series.x) <= _MOST_POINTS:
            parts.append(_between(ends))
    return np.concatenate(parts)


def _corners(series: PlotSeries) -> tuple[Floats, Floats]:
    """The points of a series; those of steps with the corner before each."""
    if series.kind != "steps":
        return series.x, series.y
    return np.repeat(series.x, 2)[1:], np.repeat(series.y, 2)[:-1]


def _between(ends: Floats) -> Floats:
    """Pixels (n, 2) on the lines between neighbours, every few pixels."""
    parts = [np.empty((0, 2))]
    for begin, step in zip(ends[:-1], np.diff(ends, axis=0), strict=True):
        count = int(np.hypot(*step) // _STEP)
        parts.append(begin + np.outer(np.arange(1, count) / max(1, count), step))
    return np.concatenate(parts)


def _boxes(axes: Axes, second: Axes | None, figure: Figure) -> Sequence[Floats]:
    """Pixels of the left, lower, right and upper ends of bars and cells."""
    parts = [np.empty((0, 4))]
    for series in figure.series:
        if series.kind not in ("bar", "heat") or series.x_low is None or series.x_high is None:
            continue
        low = np.zeros(len(series.y)) if series.y_low is None else series.y_low
        high = series.y if series.y_high is None else series.y_high
        turn = home_of(axes, second, series.axis).transData.transform
        ends = [np.asarray(turn(np.column_stack(pair))) for pair in ((series.x_low, low), (series.x_high, high))]
        parts.append(np.column_stack(ends))
    left, bottom, right, top = np.concatenate(parts).T
    return left, bottom, right, top
