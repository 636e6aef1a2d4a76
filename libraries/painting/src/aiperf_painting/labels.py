"""Labels of points: each where it covers no other text, no point and no line, or left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aiperf import Figure
from matplotlib.axes import Axes

from aiperf_painting.placing import Ground, home_of
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
_APART = 3.0
"""Pixels between two labels."""


def label_points(axes: Axes, second: Axes | None, figure: Figure, ground: Ground, look: Theme) -> None:
    """Write the labels of all points, in the order of the series, as many as there is room for."""
    labelled = [
        (home_of(axes, second, series.axis), x, y, label)
        for series in figure.series
        for x, y, label in zip(series.x.tolist(), series.y.tolist(), series.labels, strict=False)
        if label
    ][:_MOST_LABELS]
    for home, x, y, label in labelled:
        text = home.annotate(
            shown(label, 32), (x, y), xytext=(0, 0), textcoords="offset points", fontsize=8, color=look.ink,
            parse_math=False, zorder=6,
        )  # fmt: skip
        text.set_in_layout(False)
        found = ground.best(_boxes(text, ground.renderer))
        if found is None or (found[1] and len(labelled) > _FEW_LABELS):
            text.remove()
            continue
        place, hidden = found
        ground.taken.append(_moved(text, _PLACES[place], ground.renderer))
        if hidden:
            text.set_bbox({"facecolor": look.paper, "edgecolor": "none", "alpha": 0.75, "pad": 0.5})


def _boxes(text: Any, renderer: Any) -> Iterator[Any]:
    for place in _PLACES:
        yield _moved(text, place, renderer)


def _moved(text: Any, place: tuple[int, int, str, str], renderer: Any) -> Any:
    """The text's box, and a little around it, at a place."""
    right, up, horizontal, vertical = place
    text.xyann = (right, up)
    text.set_ha(horizontal)
    text.set_va(vertical)
    return text.get_window_extent(renderer).padded(_APART)
