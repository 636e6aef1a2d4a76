"""Legends, words of marks and labels: where they stand, and what they leave free."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from aiperf import Axis, Figure, PlotSeries
from aiperf.sdk.plot import Mark
from aiperf_painting import Size
from matplotlib.figure import Figure as Canvas

Painted = Callable[..., Canvas]
TWO = np.array([1.0, 2.0])
SIZES = [Size(600, 300), Size()]


def shown(*series: PlotSeries, marks: tuple[Mark, ...] = ()) -> Figure:
    return Figure("Made up", Axis("time (s)"), Axis("latency (ms)"), series, marks)


def boxes(canvas: Canvas, *words: str) -> list[Any]:
    """Boxes of the texts among the data that are one of *words*."""
    return [text.get_window_extent() for text in canvas.axes[0].texts if text.get_text() in words]


def pixels(canvas: Any, series: PlotSeries) -> Any:
    return canvas.axes[0].transData.transform(np.column_stack([series.x, series.y]))


def inside(box: Any, points: Any) -> int:
    return int(np.count_nonzero(((points > (box.x0, box.y0)) & (points < (box.x1, box.y1))).all(axis=1)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", ["even", "steep", "late"])
def test_words_of_marks_cover_no_curve(painted: Painted, size: Size, shape: str) -> None:
    share = np.linspace(1.0, 100.0, 400)
    x = {"even": share * 250, "steep": 20 + share**6 / 1e11, "late": 100 * np.sqrt(share)}[shape]
    curve = PlotSeries("a", x, share, "steps")
    marks = tuple(Mark("a", "x", float(np.percentile(x, each)), f"p{each}", "12,345.6 ms") for each in (50, 99))
    canvas = painted(shown(curve, marks=marks), size=size)
    texts = [text for text in canvas.axes[0].texts if text.get_text().startswith("p")]
    assert len(texts) == 2
    for text in texts:
        assert inside(text.get_window_extent(), pixels(canvas, curve)) == 0


def test_words_of_marks_leave_markers_free(painted: Painted) -> None:
    points = PlotSeries("a", np.arange(60.0), np.append(np.full(58, 20.3), [27.2, 20.3]), "points")
    canvas = painted(shown(points, marks=(Mark("a", "y", 20.3, "p50", "20.3 ms"), Mark("a", "y", 25.7, "p99", "25.7 ms"))))
    radius = 3.5 * canvas.dpi / 72
    for box in boxes(canvas, "p50 20.3 ms", "p99 25.7 ms"):
        assert inside(box.padded(0.7 * radius), pixels(canvas, points)) == 0


def test_words_of_marks_do_not_overlap(painted: Painted) -> None:
    series = tuple(PlotSeries(name, TWO, TWO) for name in "abc")
    marks = tuple(Mark(one.name, "y", 1.5 + place / 1e3, "p50", "1 ms") for place, one in enumerate(series))
    found = boxes(painted(shown(*series, marks=marks)), "p50")
    assert found and not any(first.overlaps(second) for first, second in itertools.combinations(found, 2))
    alone = shown(series[0], marks=tuple(Mark("a", "x", 1.5, name, "1 ms") for name in ("p50", "p99")))
    first, second = boxes(painted(alone), "p50 1 ms", "p99 1 ms")  # no legend says them
    assert not first.overlaps(second)


@pytest.mark.parametrize("size", SIZES)
def test_a_legend_covers_no_point(painted: Painted, size: Size) -> None:
    draws = np.random.default_rng(1)
    clouds = tuple(PlotSeries(name, draws.random(500), draws.random(500), "points") for name in ("c4", "c16", "c48"))
    canvas = painted(shown(*clouds), size=size)
    assert canvas.legends and canvas.axes[0].get_legend() is None, "there is no room among the data"
    free = (PlotSeries("a", TWO, TWO, "points"), PlotSeries("b", TWO, TWO[::-1], "points"))
    canvas = painted(shown(*free), size=size)
    legend = canvas.axes[0].get_legend()
    assert legend is not None
    assert all(inside(legend.get_window_extent(), pixels(canvas, one)) == 0 for one in free)


@pytest.mark.parametrize("size", SIZES)
def test_the_labels_of_a_rising_line_leave_it_free(painted: Painted, size: Size) -> None:
    x = np.array([25.0, 96.0, 157.0])
    labels = ("concurrency 4", "concurrency 16", "concurrency 48")
    line = PlotSeries("runs", x, x, "path", labels=labels, points="run")
    figure = Figure("Goodput", Axis("requests per second"), Axis("good ones"), (line,))
    canvas = painted(figure, size=size)
    texts = [text for text in canvas.axes[0].texts if text.get_text() in labels]
    assert len(texts) == 3
    between = np.linspace(pixels(canvas, line)[0], pixels(canvas, line)[-1], 500)
    assert sum(inside(text.get_window_extent(), between) for text in texts) == 0


def test_long_names_above_a_small_picture_stand_in_two_columns(painted: Painted) -> None:
    names = [f"p{percent}; {'organisation-with-a-long-name/' * 2}v{number}" for percent in (50, 90, 99) for number in (1, 2)]
    canvas = painted(shown(*(PlotSeries(name, TWO, TWO) for name in names)), size=Size(600, 300))
    (legend,) = canvas.legends
    assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == 2
    assert [text.get_text()[-2:] for text in legend.get_texts()] == ["v1", "v2"] * 3, "what differs is read"
    assert canvas.axes[0].get_window_extent().height > 0.35 * canvas.bbox.height
