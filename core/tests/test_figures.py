"""Figures: which can be drawn, how they are reduced, and how they are told in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from aiperf.sdk.figures import Axis, Figure, Lane, Mark, PlotSeries, ReferenceLine, checked, described, reduced

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 6.0, 5.0])


def figure(*series: PlotSeries, log: bool = False, **more: Any) -> Figure:
    return Figure("Load", Axis("time (s)"), Axis("latency (ms)", log=log), series, **more)


def series(kind: str, **more: Any) -> PlotSeries:
    return PlotSeries("a", X, Y, kind, **more)


ENDS: dict[str, Any] = {"x_low": X - 1, "x_high": X + 1}


@pytest.mark.parametrize(
    "good",
    [
        figure(series("bar", y_low=np.zeros(3)), log=True),
        figure(series("bar", **ENDS)),
        figure(series("band", y_low=Y - 1, y_high=Y)),
        figure(series("error", **ENDS)),
        figure(series("span", **ENDS)),
        figure(series("heat", **ENDS, y_low=Y - 1, y_high=Y, values=Y), shade="requests"),
        figure(PlotSeries("a", X, X - 1, "lanes", **ENDS), lanes=(Lane("a"), Lane("b", 1), Lane("c", 2))),
        figure(series("line", axis="y2"), y2=Axis("use (%)"), lines=(ReferenceLine("y2", 4.0, "average", "4 %"),)),
        figure(series("path", labels=("a", "b", "c"), group="g", role="baseline", points="run", rows=np.array([0, 1, 2]))),
    ],
)
def test_a_sound_figure_is_itself(good: Figure) -> None:
    assert checked(good) is good


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (figure(series("band", y_low=Y)), "is of kind band, and has no y_high"),
        (figure(series("line", y_low=Y, y_high=Y)), "is of kind line, which has no y_high and no y_low"),
        (figure(series("error", x_low=X)), "has one end of an interval without the other"),
        (figure(series("span", x_low=X + 1, x_high=X)), "has an interval that ends before it begins"),
        (figure(series("band", y_low=Y[:2], y_high=Y)), "has 3 x and 2 y_low"),
        (figure(series("band", y_low=Y - 4, y_high=Y), log=True), "y_low of the series 'a' isn't positive throughout"),
        (figure(series("line", axis="y2")), "is on the axis 'y2', which the figure lacks"),
        (figure(series("line", labels=("a",))), "has 3 x and 1 labels"),
        (figure(series("line", rows=np.array([1]))), "has 3 x and 1 rows"),
        (figure(series("line", role="rival")), "role of the series 'a' is 'rival', not baseline, treatment"),
        (figure(series("line", points="dot")), "points of the series 'a' is 'dot', not run, request, slice, sample"),
        (figure(series("line"), lines=(ReferenceLine("y2", 1.0, "SLO", "1"),)), "'SLO' is on the axis 'y2', not x or y"),
        (figure(series("line"), log=True, lines=(ReferenceLine("y", 0.0, "SLO", "0"),)), "at 0, which is not on its axis"),
        (figure(series("lanes", **ENDS)), "a figure has lanes, and only series of the kind lanes, or neither"),
        (figure(series("line"), lanes=(Lane("a"),)), "a figure has lanes, and only series of the kind lanes, or neither"),
        (figure(series("lanes", **ENDS), lanes=(Lane("a"),)), "y of the series 'a' is no number of one of the 1 lanes"),
        (figure(PlotSeries("a", X, X - 1, "lanes", **ENDS), lanes=(Lane("a"), Lane("b", 2), Lane("c"))),
            "the lane 'b' is at depth 2, below a lane at depth 0"),
    ],
)  # fmt: skip
def test_a_figure_that_can_not_be_drawn_says_why(bad: Figure, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        checked(bad)


@pytest.mark.parametrize("kind", ["line", "points", "steps", "path", "band"])
@pytest.mark.parametrize("count", [4001, 10_000, 1_000_000])
def test_a_reduced_curve_has_few_points_and_its_extremes(kind: str, count: int) -> None:
    generator = np.random.default_rng(count)
    y = generator.normal(size=count)
    y[count // 3], y[count // 2] = 99.0, -99.0
    x = np.arange(count, dtype=np.float64)
    if kind == "points":
        x = generator.permutation(x)
    ends: dict[str, Any] = {"y_low": y - 1, "y_high": y + 1} if kind == "band" else {}
    whole = PlotSeries("a", x, y, kind, rows=np.arange(count), points="request", **ends)
    small = reduced(figure(whole))
    (one,) = small.series
    assert 3000 < len(one.x) <= 4000
    assert {one.x.min(), one.x.max(), one.y.min(), one.y.max()} == {0.0, count - 1.0, -99.0, 99.0}
    assert one.rows is not None and (whole.y[one.rows] == one.y).all() and (whole.x[one.rows] == one.x).all()
    assert small.notes == (f"points that are drawn, lowest and highest among them: {len(one.x):,} of {count:,} (a)",)
    assert checked(small) is small


def test_a_curve_with_few_points_stays_whole() -> None:
    small = figure(series("line"))
    assert reduced(small) is small


def test_a_figure_is_told_with_its_numbers() -> None:
    told = described(figure(series("line"), marks=(Mark("a", "y", 5.0, "p50", "5 ms"),), notes=("Half of it.",)))
    assert told == "Load. x: time (s). y: latency (ms). a: 3 points, x 1 to 3, y 4 to 6, median 5, p50 5 ms. Half of it."
