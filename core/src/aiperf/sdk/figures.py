"""Figures as plain data: series over two or three axes, marked values, reference lines, lanes.

Pictures, pages and numbers show the same figure: checked, and reduced to as many points as a screen has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, Ints


class _Kind(NamedTuple):
    """ends: fields that a series of the kind must have; may: those that it may have.  ascends: whether x must."""

    ends: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    ascends: bool = False


_X, _Y = ("x_low", "x_high"), ("y_low", "y_high")
_KINDS = {
    "line": _Kind(ascends=True), "points": _Kind(), "steps": _Kind(ascends=True), "path": _Kind(),
    "bar": _Kind(may=(*_X, "y_low")), "band": _Kind(_Y, ascends=True), "error": _Kind(may=(*_X, *_Y)), "span": _Kind(_X),
    "heat": _Kind((*_X, *_Y, "values")), "lanes": _Kind(_X),
}  # fmt: skip
KINDS = tuple(_KINDS)
"""How a series is drawn.

``line``: neighbours joined.  ``points``: not joined.  ``steps``: each value kept until the next.  ``path``: joined in the order
of the series, x may go back.  ``bar``: from y_low (0 where there is none) to y, from x_low to x_high wide.  ``band``: the line
y in the area from y_low to y_high.  ``error``: points with intervals.  ``span``: the stretch from x_low to x_high over the
whole height; x and y are the place of its label.  ``heat``: cells with a value each.  ``lanes``: bars from x_low to x_high in
the lane whose number is y; the series is a stage of them.
"""
ROLES = ("", "baseline", "treatment")
POINTS = ("", "run", "request", "slice", "sample")
"""What a point of a series stands for; "" is nothing in particular."""
MOST_POINTS = 4000
"""Points of a curve that is shown: a picture has fewer columns of dots."""
_TOLD = 4
"""Curves of which the note tells the number of points."""
_REDUCED = ("line", "points", "steps", "path", "band")


class Axis(Struct, frozen=True):
    """*label* with its unit in brackets; *log*: in decades."""

    label: str
    log: bool = False


class PlotSeries(Struct, frozen=True):
    """Points of a picture: as many *x* as *y*, all finite; *x* ascends where *kind* is ``line``, ``steps`` or ``band``.

    x_low, x_high, y_low, y_high: ends around each point, as its kind has them (:data:`KINDS`); None where it has none.
    values: of the cells of a heat map, at least 0.  labels: a text for each point; () are none.
    axis: ``y``, or ``y2`` for the figure's second one.  group: series of a group belong together.  role: in a comparison,
    ``baseline`` or ``treatment``.  points: what a point stands for (``run``, ``request``, ``slice``, ``sample``).
    rows: of each point, its place among the good requests of the run (:meth:`PlotRun.column`); None where it has none.
    runs: of each point that stands for a run, the run's label; () where points don't.
    """

    name: str
    x: Floats
    y: Floats
    kind: str = "line"
    x_low: Floats | None = None
    x_high: Floats | None = None
    y_low: Floats | None = None
    y_high: Floats | None = None
    values: Floats | None = None
    labels: tuple[str, ...] = ()
    axis: str = "y"
    group: str = ""
    role: str = ""
    points: str = ""
    rows: Ints | None = None
    runs: tuple[str, ...] = ()

    def columns(self) -> Iterator[tuple[str, Floats]]:
        """Name and values of each array of numbers that the series has."""
        for name in ("x", "y", *_X, *_Y, "values"):
            values = getattr(self, name)
            if values is not None:
                yield name, values

    def take(self, places: Ints) -> PlotSeries:
        """The points at *places*, in this order."""
        found = {name: values[places] for name, values in self.columns()}
        labels = tuple(self.labels[place] for place in places.tolist()) if self.labels else ()
        runs = tuple(self.runs[place] for place in places.tolist()) if self.runs else ()
        return replace(self, **found, labels=labels, runs=runs, rows=None if self.rows is None else self.rows[places])


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


class ReferenceLine(Struct, frozen=True):
    """A line across the picture that belongs to no series: an objective, the average of the run.

    axis: ``x``, ``y`` or ``y2``, on which *value* stands.  label, shown: as those of :class:`Mark`.
    """

    axis: str
    value: float
    label: str
    shown: str


class Lane(Struct, frozen=True):
    """A lane of bars.  depth: 0, or one more than that of the lane that it belongs to, which stands above it."""

    name: str
    depth: int = 0


class Figure(Struct, frozen=True):
    """What a picture shows: series over two axes, and values that are marked.

    marks: a series has a few at most; they are in the order in which they are named.  y2: a second axis of y, on the right.
    lines: references.  lanes: of series of the kind ``lanes``, from the top; such a figure has no other series.
    shade: what the values of a heat map are, with the unit.  notes: sentences that belong to the picture, for its caption.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[PlotSeries, ...]
    marks: tuple[Mark, ...] = ()
    y2: Axis | None = None
    lines: tuple[ReferenceLine, ...] = ()
    lanes: tuple[Lane, ...] = ()
    shade: str = ""
    notes: tuple[str, ...] = ()


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
        if all(mark.series != one.name for one in figure.series):
            raise ValueError(f"the mark {mark.label!r} is of the series {mark.series!r}, which is not there")
        _check_value(f"the mark {mark.label!r}", mark, {"x": figure.x, "y": figure.y})
    for line in figure.lines:
        _check_value(f"the reference line {line.label!r}", line, _axes(figure))
    _check_lanes(figure)
    return figure


def _axes(figure: Figure) -> dict[str, Axis]:
    return {"x": figure.x, "y": figure.y} | ({} if figure.y2 is None else {"y2": figure.y2})


def _check_value(which: str, mark: Mark | ReferenceLine, axes: dict[str, Axis]) -> None:
    if mark.axis not in axes:
        raise ValueError(f"{which} is on the axis {mark.axis!r}, not {' or '.join(axes)}")
    if not math.isfinite(mark.value) or (axes[mark.axis].log and mark.value <= 0):
        raise ValueError(f"{which} stands at {mark.value:g}, which is not on its axis")


def _check_lanes(figure: Figure) -> None:
    stages = [one for one in figure.series if one.kind == "lanes"]
    if bool(figure.lanes) != bool(stages) or (stages and len(stages) < len(figure.series)):
        raise ValueError("a figure has lanes, and only series of the kind lanes, or neither")
    for one in stages:
        if (one.y != one.y.astype(int)).any() or one.y.min() < 0 or one.y.max() >= len(figure.lanes):
            raise ValueError(f"y of the series {one.name!r} is no number of one of the {len(figure.lanes)} lanes")
    depth = -1
    for lane in figure.lanes:
        if not 0 <= lane.depth <= depth + 1:
            raise ValueError(f"the lane {lane.name!r} is at depth {lane.depth}, below a lane at depth {depth}")
        depth = lane.depth


def _check(one: PlotSeries, figure: Figure) -> None:
    whose, axes = f"the series {one.name!r}", _axes(figure)
    if one.kind not in _KINDS:
        raise ValueError(f"{whose} is of kind {one.kind!r}, not {', '.join(KINDS)}")
    for what, word, words in (("role", one.role, ROLES), ("points", one.points, POINTS)):
        if word not in words:
            raise ValueError(f"{what} of {whose} is {word!r}, not {', '.join(filter(None, words))}")
    if one.axis not in axes or one.axis == "x":
        raise ValueError(f"{whose} is on the axis {one.axis!r}, which the figure lacks")
    for name, values in one.columns():
        axis = None if name == "values" else figure.x if name[0] == "x" else axes[one.axis]
        _check_numbers(f"{name} of {whose}", values, axis if name != "y_low" or one.kind != "bar" else None)
        if len(values) != len(one.x):
            raise ValueError(f"{whose} has {len(one.x)} x and {len(values)} {name}")
    if not len(one.x):
        raise ValueError(f"{whose} has no value")
    rows = 0 if one.rows is None else len(one.rows)
    for what, count in (("labels", len(one.labels)), ("runs", len(one.runs)), ("rows", rows)):
        if count not in (0, len(one.x)):
            raise ValueError(f"{whose} has {len(one.x)} x and {count} {what}")
    _check_ends(one, whose)


def _check_numbers(which: str, values: object, axis: Axis | None) -> None:
    import numpy as np

    if not (isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu"):
        raise ValueError(f"{which} is no array of numbers")
    if not np.isfinite(values).all():
        raise ValueError(f"{which} isn't finite throughout")
    if axis is not None and axis.log and not (values > 0).all():
        raise ValueError(f"{which} isn't positive throughout, and its axis is in decades")


def _check_ends(one: PlotSeries, whose: str) -> None:
    kind, given = _KINDS[one.kind], {name for name, _ in one.columns()} - {"x", "y"}
    if lacking := [name for name in kind.ends if name not in given]:
        raise ValueError(f"{whose} is of kind {one.kind}, and has no {' and no '.join(lacking)}")
    if more := sorted(given - {*kind.ends, *kind.may}):
        raise ValueError(f"{whose} is of kind {one.kind}, which has no {' and no '.join(more)}")
    for low, high in ((one.x_low, one.x_high), (one.y_low, one.y_high)):
        if (low is None) != (high is None) and one.kind != "bar":
            raise ValueError(f"{whose} has one end of an interval without the other")
        if low is not None and high is not None and (low > high).any():
            raise ValueError(f"{whose} has an interval that ends before it begins")
    if kind.ascends and (one.x[1:] < one.x[:-1]).any():
        raise ValueError(f"x of {whose} doesn't ascend, and neighbours are joined")


def reduced(figure: Figure, most: int = MOST_POINTS) -> Figure:
    """The figure with *most* points a curve at most, and a note on the curves that lost some; extremes stay.

    A curve is divided into ``most // 4`` stretches of neighbours, as many points each; the lowest and the highest point of each
    stay, and two others: the first and the last of a curve that is joined, else two at fixed places.  Bars, cells, intervals
    and lanes are not reduced.
    """
    small = {one.name: one.take(_kept(one, most // 4)) for one in figure.series if one.kind in _REDUCED and len(one.x) > most}
    if not small:
        return figure
    told = [f"{len(small[one.name].x):,} of {len(one.x):,} ({one.name})" for one in figure.series if one.name in small]
    further = f" and of {len(told) - _TOLD} further curves a part" if len(told) > _TOLD else ""
    note = f"points that are drawn, lowest and highest among them: {', '.join(told[:_TOLD])}{further}"
    series = tuple(small.get(one.name, one) for one in figure.series)
    return replace(figure, series=series, notes=(*figure.notes, note))


def _kept(one: PlotSeries, stretches: int) -> Ints:
    """Places of the points that stay, in the order of the series; of points that aren't joined, in that of x."""
    import numpy as np

    count = len(one.x)
    order = np.argsort(one.x, kind="stable") if one.kind == "points" and (one.x[1:] < one.x[:-1]).any() else np.arange(count)
    begins = np.arange(stretches, dtype=np.int64) * count // stretches
    ends = np.append(begins[1:], count)
    low, high = (one.y if end is None else end for end in (one.y_low, one.y_high))
    found = [begins + (ends - begins) // 3, begins + (ends - begins) * 2 // 3] if one.kind == "points" else [begins, ends - 1]
    if one.kind == "points":
        found += [np.array([0, count - 1])]  # the least and the greatest x; the stretches at both ends give up a point
        found[0], found[1] = found[0][1:], found[1][:-1]
    for values, pick in ((low[order], np.minimum), (high[order], np.maximum)):
        extreme = np.repeat(pick.reduceat(values, begins), ends - begins)
        places = np.flatnonzero(values == extreme)
        found.append(places[np.searchsorted(places, begins)])
    return np.asarray(order[np.unique(np.concatenate(found))], dtype=np.int64)


def described(figure: Figure) -> str:
    """What the figure shows, in words and numbers, for those who don't see it."""
    import numpy as np

    axes = [f"x: {figure.x.label}", f"y: {figure.y.label}", *([] if figure.y2 is None else [f"second y: {figure.y2.label}"])]
    parts = [figure.title.rstrip("."), *axes]
    if figure.lanes:
        parts.append(f"{len(figure.lanes)} lanes")
    for one in figure.series[:_DESCRIBED]:
        count = "1 point" if len(one.x) == 1 else f"{len(one.x):,} points"
        about = f"{one.name}: {count}"
        if len(one.x) == 1:
            about += f" at x {_shown(one.x[0])}, y {_shown(one.y[0])}"
        elif one.kind not in ("lanes", "heat", "span"):
            ends = f"x {_shown(one.x.min())} to {_shown(one.x.max())}, y {_shown(one.y.min())} to {_shown(one.y.max())}"
            about += f", {ends}, median {_shown(float(np.median(one.y)))}"
        elif one.kind == "heat" and one.values is not None:
            top = int(np.argmax(one.values))
            about += f", the most ({_shown(one.values[top])}) at x {_shown(one.x[top])}, y {_shown(one.y[top])}"
        elif one.x_low is not None and one.x_high is not None:
            about += f", x {_shown(one.x_low.min())} to {_shown(one.x_high.max())}"
        marks = [f"{mark.label} {mark.shown}" for mark in figure.marks if mark.series == one.name]
        parts.append(", ".join([about, *marks]))
    if len(figure.series) > _DESCRIBED:
        parts.append(f"and {len(figure.series) - _DESCRIBED} further series")
    parts += [f"{line.label}: {line.shown}" for line in figure.lines]
    return ". ".join([*parts, *(note.rstrip(".") for note in figure.notes)]) + "."


_DESCRIBED = 12
"""Series that are described one by one."""


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


__all__ = ["Lane", "ReferenceLine", "described", "reduced"]
