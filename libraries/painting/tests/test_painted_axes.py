"""Axes of pictures: numbers beside ticks, limits, bars, colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from aiperf import Axis, Figure, PlotSeries
from aiperf.sdk.figures import Lane, ReferenceLine
from aiperf_painting import Size
from aiperf_painting.styles import THEMES, styles
from aiperf_painting.ticks import commas, decade_values, power_of
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as Canvas

Painted = Callable[..., Canvas]
ONE, TWO = np.array([1.0]), np.array([1.0, 2.0])


def shown(*series: PlotSeries) -> Figure:
    return Figure("Made up", Axis("time (s)"), Axis("latency (ms)"), series)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (2.4, 90.0, ["5", "10", "20", "50"]),
        (0.02, 0.9, ["0.02", "0.05", "0.1", "0.2", "0.5"]),
        (20.0, 40_000.0, ["100", "1,000", "10,000"]),
        (1e-3, 1e9, ["0.001", "0.1", "10", "1,000", "100,000", "10⁷", "10⁹"]),
        (41.0, 44.0, ["41", "42", "43", "44"]),
        (2e7, 9e7, ["2·10⁷", "5·10⁷"]),
    ],
)
def test_an_axis_in_decades_has_numbers_that_are_read(low: float, high: float, texts: list[str]) -> None:
    assert [power_of(value) for value in decade_values(low, high)] == texts


@pytest.mark.parametrize(
    ("given", "text"), [("25000", "25,000"), ("−1250.5", "−1,250.5"), ("0.25", "0.25"), ("1e+20", "1e+20"), ("", "")]
)
def test_thousands_have_commas(given: str, text: str) -> None:
    assert commas(given) == text


@pytest.mark.parametrize("y", [[25_711.117400001, 25_711.117400002], [1e9, 1e9 + 3], [1e-9, 3e-9], [1e9, 1e-3]])
def test_no_axis_has_a_factor_or_an_offset(painted: Painted, y: list[float]) -> None:
    canvas = painted(shown(PlotSeries("a", np.array(y), np.array(y)[::-1], "points")))
    for axis in (canvas.axes[0].xaxis, canvas.axes[0].yaxis):
        assert axis.get_offset_text().get_text() == ""
        assert len({tick.label1.get_text() for tick in axis.get_major_ticks()}) > 1


def test_a_single_point_stands_between_zero_and_its_double(painted: Painted) -> None:
    for x, limits in ((1.0, (0.0, 2.0)), (0.0, (-0.05, 1.0)), (-3.0, (-6.0, 0.0))):
        axes = painted(shown(PlotSeries("a", np.array([x]), ONE, "points"))).axes[0]
        assert axes.get_xlim() == limits
    assert [tick.label1.get_text() for tick in axes.xaxis.get_major_ticks()][:2] == ["−6", "−5"], "whole numbers"


def test_values_that_are_all_zero_lie_on_an_axis_up_to_one(painted: Painted) -> None:
    axes = painted(shown(PlotSeries("a", TWO, np.zeros(2)))).axes[0]
    assert axes.get_ylim() == (0.0, 1.0)


def test_a_bar_that_is_alone_has_room_on_both_sides(painted: Painted) -> None:
    bar = PlotSeries("a", np.array([45.5]), ONE, "bar", x_low=np.array([45.0]), x_high=np.array([46.0]))
    assert painted(shown(bar)).axes[0].get_xlim() == (43.0, 48.0)
    ends: dict[str, Any] = {"x_low": np.zeros(1), "x_high": ONE, "y_low": np.array([45.0]), "y_high": np.array([46.0])}
    cell = PlotSeries("a", ONE / 2, np.array([45.5]), "heat", values=ONE, **ends)
    axes = painted(shown(cell)).axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 3.0), (43.0, 48.0))


def test_lanes_are_named_in_round_steps(painted: Painted) -> None:
    y = np.arange(535.0)
    stages = (PlotSeries("wait", y, y, "lanes", x_low=y, x_high=y + 1), PlotSeries("work", y, y, "lanes", x_low=y, x_high=y))
    lanes = tuple(Lane(f"{number + 1}") for number in range(535))
    axes = painted(Figure("Lanes", Axis("time (s)"), Axis("slot"), stages, lanes=lanes)).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()][:4] == ["1", "51", "101", "151"]


def test_thin_bars_are_seen_and_many_bars_of_lanes_are_plain(painted: Painted) -> None:
    edges = np.array([0.0, 20.0, 40.0, 40.05])
    bars = PlotSeries("a", edges[:-1] + 0.02, np.array([3.0, 4.0, 9.0]), "bar", x_low=edges[:-1], x_high=edges[1:])
    (boxes,) = painted(shown(bars), size=Size(600, 300)).axes[0].collections
    inside, edges_of = ([*map(to_hex, np.asarray(colours))] for colours in (boxes.get_facecolor(), boxes.get_edgecolor()))
    assert edges_of == [THEMES["light"].paper, THEMES["light"].paper, inside[0]]
    x = np.arange(400.0)
    many = tuple(PlotSeries(name, x, x % 8, "lanes", x_low=x, x_high=x + 1) for name in ("wait", "work"))
    figure = Figure("Lanes", Axis("time (s)"), Axis("slot"), many, lanes=tuple(Lane(str(number)) for number in range(8)))
    stages = painted(figure).axes[0].collections
    assert [(boxes.get_hatch() or "", np.max(boxes.get_linewidth())) for boxes in stages] == [("", 0.0)] * 2


def contrast(first: Any, second: Any) -> float:
    """Of two colours, 1 to 21, as WCAG 2.2 has it."""
    def light(colour: Any) -> float:
        parts = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in to_rgb(colour)]
        return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_request_among_many_is_seen_in_a_heat_map(painted: Painted, theme: str) -> None:
    low, high = np.array([100.0, 110.0]), np.array([110.0, 900.0])
    ends: dict[str, Any] = {"x_low": TWO - 1, "x_high": TWO, "y_low": low, "y_high": high}
    cells = PlotSeries("a", TWO - 0.5, np.array([105.0, 505.0]), "heat", values=np.array([1.0, 250.0]), **ends)
    figure = Figure("Cells", Axis("time (s)"), Axis("latency (ms)"), (cells,), shade="requests")
    axes, bar = painted(figure, theme=theme).axes
    (boxes,) = [each for each in axes.collections if isinstance(each, PolyCollection)]
    assert contrast(np.asarray(boxes.get_facecolor())[0][:3], THEMES[theme].paper) > 1.4
    texts = [tick.label1.get_text() or tick.label2.get_text() for tick in bar.yaxis.get_major_ticks()]
    assert texts and not any("." in text for text in texts), "requests are counted"
    assert axes.get_ylim()[0] == 0.0, "it starts near zero"


def test_a_reference_stands_above_bars_and_is_written_where_none_is(painted: Painted) -> None:
    edges = np.arange(11.0)
    bars = PlotSeries("a", edges[:-1] + 0.5, np.arange(10.0), "bar", x_low=edges[:-1], x_high=edges[1:])
    figure = Figure("Slices", Axis("time (s)"), Axis("latency (ms)"), (bars,), lines=(ReferenceLine("y", 5.0, "avg", "5 ms"),))
    axes = painted(figure).axes[0]
    (boxes,) = axes.collections
    assert all(line.get_zorder() > boxes.get_zorder() for line in axes.lines)
    (words,) = [text for text in axes.texts if text.get_text() == "avg 5 ms"]
    assert words.get_window_extent().x1 < axes.transData.transform((6.0, 5.0))[0], "right of it bars are higher"


def test_a_long_title_and_label_are_broken(painted: Painted) -> None:
    title, label = "Requests of each of the models that were asked, and what came of them, twice", "latency of a request, " * 5
    figure = Figure(title, Axis(label), Axis("y"), (PlotSeries("a", np.array([900.0, 950.0]), TWO),))
    canvas = painted(figure, size=Size(600, 300))
    axes = canvas.axes[0]
    for text in (axes.title if axes.title.get_text() else axes._left_title, axes.xaxis.label):  # type: ignore[attr-defined]
        assert "\n" in text.get_text()
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= canvas.bbox.x1


def test_what_belongs_to_points_has_no_markers_of_its_own(painted: Painted) -> None:
    ends: dict[str, Any] = {"y_low": TWO - 1, "y_high": TWO + 1}
    series = [
        PlotSeries("runs", TWO, TWO, "points", group="g", points="run"),
        PlotSeries("runs, intervals", TWO, TWO, "error", **ends, group="g"),
        PlotSeries("frontier", TWO, TWO, "path", group="g"),
        PlotSeries("others", TWO, TWO, "path", group="h"),
        PlotSeries("alone", TWO, TWO, "error", **ends),
    ]
    found = styles(shown(*series), THEMES["light"])
    assert [found[each.name].marker == "none" for each in series] == [False, True, True, False, False]
    lines = [found[name] for name in ("frontier", "others")]
    assert lines[0].dashes != lines[1].dashes, "in grey, too"
    legend = painted(shown(*series)).axes[0].get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["runs", "frontier", "others", "alone"]
