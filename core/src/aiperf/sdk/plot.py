"""The contract of plots: results of runs in, a figure as plain data out.

A plot draws nothing itself: the command ``aiperf plot`` shows the figure, as a picture or as numbers.  Results of this program
and of the reference can stand in one figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

KINDS = ("line", "points", "steps", "path")
"""How a series is drawn: neighbours joined, not joined, each value kept until the next, or joined in the order of the series
while x may go back."""


class Axis(Struct, frozen=True):
    """*label* with its unit in brackets; *log*: in decades."""

    label: str
    log: bool = False


class PlotSeries(Struct, frozen=True):
    """Points of a picture: as many *x* as *y*, all finite; *x* ascends where *kind* is ``line`` or ``steps``."""

    name: str
    x: Floats
    y: Floats
    kind: str = "line"


class Mark(Struct, frozen=True):
    """A value of a series that is worth a line of its own, such as a percentile.

    series: name of the series.  axis: ``x`` or ``y``, the axis on which *value* stands.  label: what it is, in a word, such as
    ``p99``.  shown: the value with its unit (``41.9 ms``).
    """

    series: str
    axis: str
    value: float
    label: str
    shown: str


class Figure(Struct, frozen=True):
    """What a picture shows: series over two axes, and values that are marked.

    marks: a series has a few at most; they are in the order in which they are named.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[PlotSeries, ...]
    marks: tuple[Mark, ...] = ()


def checked(figure: object) -> Figure:
    """The figure itself, where it can be drawn.

    Raises:
        ValueError: It can't; says why.
    """
    if not isinstance(figure, Figure):
        raise ValueError(f"draw() gave {type(figure).__name__}, not a Figure")
    if not figure.series:
        raise ValueError("a figure without a series; where there is nothing to show draw() gives None")
    for index, one in enumerate(figure.series):
        _check(one, figure)
        if any(one.name == other.name for other in figure.series[:index]):
            raise ValueError(f"two series are called {one.name!r}")
    for mark in figure.marks:
        _check_mark(mark, figure)
    return figure


def _check_mark(mark: Mark, figure: Figure) -> None:
    axis = {"x": figure.x, "y": figure.y}.get(mark.axis)
    if axis is None:
        raise ValueError(f"the mark {mark.label!r} is on the axis {mark.axis!r}, not x or y")
    if all(mark.series != one.name for one in figure.series):
        raise ValueError(f"the mark {mark.label!r} is of the series {mark.series!r}, which is not there")
    if not math.isfinite(mark.value) or (axis.log and mark.value <= 0):
        raise ValueError(f"the mark {mark.label!r} stands at {mark.value:g}, which is not on its axis")


def _check(one: PlotSeries, figure: Figure) -> None:
    import numpy as np

    whose = f"the series {one.name!r}"
    if one.kind not in KINDS:
        raise ValueError(f"{whose} is of kind {one.kind!r}, not {', '.join(KINDS)}")
    for which, values, axis in (("x", one.x, figure.x), ("y", one.y, figure.y)):
        if not (isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu"):
            raise ValueError(f"{which} of {whose} is no array of numbers")
        if not np.isfinite(values).all():
            raise ValueError(f"{which} of {whose} isn't finite throughout")
        if axis.log and not (values > 0).all():
            raise ValueError(f"{which} of {whose} isn't positive throughout, and its axis is in decades")
    if len(one.x) != len(one.y):
        raise ValueError(f"{whose} has {len(one.x)} x and {len(one.y)} y")
    if not len(one.x):
        raise ValueError(f"{whose} has no value")
    if one.kind in ("line", "steps") and (one.x[1:] < one.x[:-1]).any():
        raise ValueError(f"x of {whose} doesn't ascend, and neighbours are joined")


class PlotRun:
    """The results of one run, as a plot sees them; :func:`aiperf.results.open_run` reads them from a directory.

    label: what tells the run from others.  summary: ``profile_export_aiperf.json``, whole.
    columns: by name, a number for each good request of the profiling phase.
    """

    def __init__(self, label: str, summary: Mapping[str, Any], columns: Mapping[str, Floats] | None = None) -> None:
        self.label, self._summary, self._columns = label, summary, columns or {}

    @property
    def summary(self) -> Mapping[str, Any]:
        return self._summary

    def number(self, tag: str, statistic: str = "avg") -> float | None:
        """A metric's statistic; None where the run doesn't have it, or it isn't finite."""
        entry = self.summary.get(tag)
        value = entry.get(statistic) if isinstance(entry, Mapping) else None
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return None
        return float(value)

    def column(self, name: str) -> Floats:
        """A number for each good request of the profiling phase; NaN where it has none, empty without requests.

        *name*: a metric's tag, or a field of the metadata in ns (``request_start_ns``).
        """
        import numpy as np

        return self._columns.get(name, np.empty(0))


class Plot(WithOptions[OptionsT]):
    """One kind of picture.  options: the plot's own (None where it declares none).

    title: what it shows, for people.  runs: how many it takes at least.
    """

    title: ClassVar[str]
    runs: ClassVar[int] = 1

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        """The figure of *runs*, at least as many as it takes; None where they don't have what it shows."""
        raise NotImplementedError(f"{type(self).__name__} must define draw(runs)")


class Painter(Protocol):
    """What ``registry.load("commands", "plot")()`` is, for commands with a figure of their own."""

    def paint(self, figure: Figure, path: Path, caption: Sequence[str] = ()) -> Path:
        """Draw into *path*, a PNG or SVG by its ending, the lines of *caption* below.

        Raises:
            AiperfError: It can't be written.
        """


__all__ = ["Axis", "Figure", "Mark", "Painter", "Plot", "PlotRun", "PlotSeries", "checked"]
