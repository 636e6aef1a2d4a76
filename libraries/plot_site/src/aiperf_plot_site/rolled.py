"""Rolling percentiles of the requests of a figure, before its points are reduced."""

from __future__ import annotations

import numpy as np
from aiperf import Figure, PlotSeries
from aiperf_plotting.times import rolling
from msgspec.structs import replace


def rolled(figure: Figure, window: int) -> Figure:
    """The figure with a line for each series of single requests: the median of *window* neighbours, by x."""
    more = []
    for one in figure.series:
        if one.kind == "points" and one.points == "request" and len(one.x) > 1:
            order = np.argsort(one.x, kind="stable")
            (middle,) = rolling(one.y[order], min(window, len(one.x)), (50.0,))
            name = f"{one.name}: rolling p50 of {window:,}"
            more.append(PlotSeries(name, one.x[order], middle, "line", axis=one.axis, group=one.group, role=one.role))
    return replace(figure, series=(*figure.series, *more)) if more else figure
