"""Pictures: what they say, in which words, and that they are the same each time."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf import AiperfError, Axis, Figure, PlotSeries
from aiperf.sdk.figures import Lane, ReferenceLine, checked, reduced
from aiperf.sdk.plot import Mark
from aiperf_painting import Size, picture
from aiperf_painting.styles import THEMES, styles
from aiperf_painting.styles import shown as cut
from matplotlib.text import Text

ONE, TWO = np.array([1.0]), np.array([1.0, 2.0])


def shown(*series: PlotSeries, log: bool = False, marks: tuple[Mark, ...] = ()) -> Figure:
    return Figure("Broken", Axis("time (s)"), Axis("latency (ms)", log=log), series, marks)


@pytest.mark.parametrize("label", ["a$b_{$c", "_hidden", "50% & <more>"])
def test_a_directory_may_have_any_name(tmp_path: Path, label: str) -> None:
    figure = shown(PlotSeries(label, TWO, TWO), PlotSeries("other", TWO, TWO))
    drawn = picture(figure, tmp_path / "names.svg", theme="light").read_text()
    assert label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in drawn


@pytest.mark.parametrize(
    ("x", "log", "label"),
    [
        (np.array([40.0, 60.0]), False, "time (s); starts at 39, not at 0"),
        (np.array([0.0, 60.0]), False, "time (s)"),
        (np.array([40.0, 60.0]), True, "time (s)"),
        (np.array([4000.0, 6000.0]), False, "time (s); starts at 3,900, not at 0"),
    ],
)
def test_an_axis_that_does_not_start_at_zero_says_so(tmp_path: Path, x: Any, log: bool, label: str) -> None:
    figure = Figure("Broken", Axis("time (s)", log=log), Axis("latency (ms)"), (PlotSeries("a", x, TWO),))
    drawn = picture(figure, tmp_path / "axis.svg", theme="light").read_text()
    assert f"<!-- {label} -->" in drawn and "<!-- latency (ms) -->" in drawn


def test_values_below_zero_are_in_the_picture(tmp_path: Path) -> None:
    below, above = (
        picture(shown(PlotSeries("a", TWO, y)), tmp_path / f"{name}.svg", theme="light").read_text()
        for name, y in (("below", np.array([-5.0, 5.0])), ("above", np.array([5.0, 5.0])))
    )
    assert "<!-- −4 -->" in below and "<!-- −4 -->" not in above


def drawn_texts(path: Path) -> list[str]:
    """The texts of an SVG, each of which stands in a comment before its glyphs."""
    return re.findall(r"<!-- (.*?) -->", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_mark_is_a_line_with_its_text(tmp_path: Path, theme: str) -> None:
    marks = (Mark("a", "x", 1.0, "p50", "1.0 s"), Mark("a", "x", 2.0, "p99", "2.0 s"))
    texts = drawn_texts(picture(shown(PlotSeries("a", TWO, TWO), marks=marks), tmp_path / "one.svg", theme=theme))
    assert {"p50 1.0 s", "p99 2.0 s"} <= set(texts)
    two = shown(PlotSeries("a", TWO, TWO), PlotSeries("b", TWO, TWO), marks=(*marks, Mark("b", "y", 2.0, "p50", "2 ms")))
    texts = drawn_texts(picture(two, tmp_path / "two.svg", theme=theme))
    marked = sorted(text for text in texts if "p50" in text or "p99" in text)
    assert marked == ["a: p50 1.0 s, p99 2.0 s", "b: p50 2 ms", "p50", "p50", "p99"]


def test_a_long_reason_is_whole_on_several_lines(tmp_path: Path) -> None:
    reason = "– " + " ".join(f"word{n}" for n in range(60))
    texts = drawn_texts(picture(shown(PlotSeries("a", TWO, TWO)), tmp_path / "long.svg", theme="light", caption=["a", reason]))
    lines = [text for text in texts if "word" in text]
    assert " ".join(" ".join(lines).split()) == reason
    assert max(map(len, lines)) <= 165 and len(lines) == 3


def test_a_place_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(AiperfError, match="can't be written"):
        picture(shown(PlotSeries("a", TWO, TWO)), tmp_path / "taken" / "latency.png", theme="dark")


def every_kind() -> list[Figure]:
    """A figure for each group of kinds."""
    x = np.arange(6.0)
    y = x + 1

    def one(name: str, kind: str, **more: Any) -> PlotSeries:
        return PlotSeries(name, x, y, kind, **more)

    time, latency = Axis("time (s)"), Axis("latency (ms)")
    ends: dict[str, Any] = {"x_low": x - 0.4, "x_high": x + 0.4}
    bars = (one("late", "bar", **ends), one("lost", "bar", y_low=y / 2))
    bands = (one("p50", "band", y_low=y / 2, y_high=y * 2), one("use", "line", axis="y2"), one("warm", "span", **ends))
    points = (one("runs", "error", **ends, y_low=y - 1, y_high=y + 1, labels=tuple("abcdef"), points="run"),)
    cells = (one("requests", "heat", **ends, y_low=y - 0.5, y_high=y + 0.5, values=y),)
    stages = (PlotSeries("wait", x, np.arange(6.0) % 2, "lanes", **ends),)
    return [
        Figure("Bars", time, latency, bars), Figure("Points", time, latency, points),
        Figure("Bands", time, latency, bands, y2=Axis("use (%)"), lines=(ReferenceLine("y", 3.0, "SLO", "3 ms"),)),
        Figure("Cells", time, latency, cells, shade="requests"),
        Figure("Lanes", time, Axis("slot"), stages, lanes=(Lane("root"), Lane("child", 1))),
    ]  # fmt: skip


@pytest.mark.parametrize("figure", every_kind(), ids=lambda figure: str(figure.title))
def test_every_kind_is_drawn_the_same_each_time(tmp_path: Path, figure: Figure) -> None:
    first, second = (picture(checked(figure), tmp_path / name / "a.svg", theme="dark") for name in ("1", "2"))
    assert first.read_bytes() == second.read_bytes()
    texts = drawn_texts(first)
    words = {figure.title, figure.x.label, *(line.label + " " + line.shown for line in figure.lines)}
    assert words <= set(texts)
    assert {label for series in figure.series for label in series.labels} <= set(texts)
    assert {text.strip() for text in texts} >= {lane.name for lane in figure.lanes}


def test_a_picture_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    path = picture(shown(PlotSeries("a", TWO, TWO)), tmp_path / "a.png", theme="light", size=Size(600, 400))
    head = path.read_bytes()[16:24]
    assert (int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")) == (600, 400)


def test_forty_series_look_different_without_their_colours() -> None:
    figure = shown(*(PlotSeries(f"run{n}", TWO, TWO) for n in range(8)))
    looks = {(str(style.dashes), style.marker) for style in styles(figure, THEMES["light"]).values()}
    assert len(looks) == 8


def test_series_of_a_group_share_a_colour_and_baselines_are_grey() -> None:
    series = [PlotSeries(f"{group}{n}", TWO, TWO, group=group, role=role)
              for group, role in (("old", "baseline"), ("new", "treatment")) for n in range(2)]  # fmt: skip
    found = styles(shown(*series), THEMES["light"])
    assert found["old0"].colour == found["old1"].colour != found["new0"].colour
    red, green, blue = (found["old0"].colour[at : at + 2] for at in (1, 3, 5))
    assert red == green == blue


def test_those_who_do_not_see_a_picture_read_it(tmp_path: Path) -> None:
    path = picture(shown(PlotSeries("a", TWO, np.array([3.0, 9.0]))), tmp_path / "a.svg", theme="light")
    assert re.search(r'<svg role="img" aria-label="Broken. x: time \(s\)[^"]*y 3 to 9, median 6', path.read_text())


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\x1b[31mred", "a" * 300, "\u05e9\u05dc\u05d5\u05dd", "$x$"])
def test_names_of_others_do_no_harm(tmp_path: Path, name: str) -> None:
    figure = shown(PlotSeries(name, TWO, TWO, labels=(name, "")), PlotSeries("b", TWO, TWO))
    path = picture(checked(figure), tmp_path / "a.svg", theme="light", caption=[name])
    assert "<script" not in path.read_text() and "\x1b" not in path.read_text()
    assert cut(name).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in drawn_texts(path), "in the legend"


def test_a_spike_among_a_million_points_is_in_the_picture(tmp_path: Path) -> None:
    y = np.full(1_000_000, 5.0)
    y[765_432] = 50.0
    figure = reduced(shown(PlotSeries("a", np.arange(1e6), y, "points")))
    assert len(figure.series[0].x) <= 4000
    drawn = drawn_texts(picture(figure, tmp_path / "a.svg", theme="light"))
    assert "50" in drawn, "the axis reaches to the spike"
    assert any("of 1,000,000 (a)" in text for text in drawn)


def test_a_small_picture_has_its_whole_label_and_half_the_names(tmp_path: Path) -> None:
    y = Axis("requests per second that meet all objectives, of those that were asked for")
    many = tuple(PlotSeries(f"a run with a long name {number}", TWO, TWO) for number in range(40))
    words = Figure("Goodput", Axis("load"), y, many)
    small, large = tmp_path / "small.svg", tmp_path / "large.svg"
    picture(words, small, theme="light", size=Size(600, 300))
    picture(words, large, theme="light")
    texts = [drawn_texts(path) for path in (small, large)]
    first, whole = (next(text for text in each if text.startswith("requests per second")) for each in texts)
    assert len(first) < 30 < len(whole) and all(y.label in " ".join(each) for each in texts)
    assert any("name 5 and 34 more" in text for text in drawn_texts(small))
    assert any("name 11 and 28 more" in text for text in drawn_texts(large))


def boxes_of(painted: Any, figure: Figure, **more: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The frame of a picture, and each of its texts with its box."""
    canvas = painted(figure, **more)
    every = [tick for axes in canvas.axes for axis in (axes.xaxis, axes.yaxis) for tick in axis.get_major_ticks()]
    ticks = {id(tick.label1) for tick in every if not tick.label1.get_text().startswith("lane ")}  # may be out of the axis
    texts = [text for text in canvas.findobj(Text) if isinstance(text, Text) and text.get_text() and id(text) not in ticks]
    return canvas.bbox, [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible()]


@pytest.mark.parametrize("size", [Size(600, 300), Size()])
@pytest.mark.parametrize("name", ["c", "server: vllm:kv_cache_usage_percent of all replicas", "W" * 90])
@pytest.mark.parametrize("count", [3, 40])
def test_no_legend_and_no_caption_is_cut_off(painted: Any, size: Size, name: str, count: int) -> None:
    series = tuple(PlotSeries(f"{name} {number}", TWO, TWO) for number in range(count))
    marks = tuple(Mark(one.name, "y", 1.5, f"p{percent}", "1,234.5 ms") for one in series[:3] for percent in (50, 99))
    caption = [f"{'n' * 400}: model {name}", *(f"– reason {number} of a verdict" for number in range(9))]
    frame, texts = boxes_of(painted, shown(*series, marks=marks), caption=caption, size=size)
    for text, box in texts:
        assert frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 and frame.y0 - 1 <= box.y0 and box.y1 <= frame.y1 + 1, text
    below = next(box for text, box in texts if "further line" in text)
    assert below.height < 0.25 * frame.height


def test_labels_cover_neither_each_other_nor_their_line(painted: Any) -> None:
    x = np.arange(1.0, 41.0)
    labels = tuple(f"concurrency {number:g}" for number in x)
    figure = shown(PlotSeries("runs", x, 100 * x / (1 + x / 9), "path", labels=labels, points="run"))
    _, texts = boxes_of(painted, figure, size=Size(600, 300))
    boxes = [box for text, box in texts if text in labels]
    assert len(boxes) > 5
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])
    few = shown(PlotSeries("runs", x[:3], x[:3], "path", labels=labels[:3], points="run"))
    assert sum(text in labels for text, _ in boxes_of(painted, few)[1]) == 3


@pytest.mark.parametrize(("y", "ticks"), [([0.0, 1.0], {"0", "1"}), ([0.5, 1.0], {"0.0", "0.2"})])
def test_counts_have_no_fractions(tmp_path: Path, y: list[float], ticks: set[str]) -> None:
    texts = drawn_texts(picture(shown(PlotSeries("a", np.array([40.0, 60.0]), np.array(y))), tmp_path / "a.svg", theme="light"))
    assert ticks <= set(texts) and ("0.2" in texts) == ("0.2" in ticks)


def test_an_axis_that_starts_near_zero_starts_there(tmp_path: Path) -> None:
    figure = shown(PlotSeries("a", np.array([8.0, 100.0]), TWO))
    assert "time (s)" in drawn_texts(picture(figure, tmp_path / "a.svg", theme="light"))


def test_lanes_are_named_as_far_as_there_is_room(painted: Any) -> None:
    y = np.arange(200.0)
    stages = (PlotSeries("wait", y, y, "lanes", x_low=y, x_high=y + 1), PlotSeries("work", y, y, "lanes", x_low=y, x_high=y))
    lanes = tuple(Lane(f"lane {number}") for number in range(200))
    figure = Figure("Lanes", Axis("time (s)"), Axis("lane"), stages, lanes=lanes, notes=("a note",) * 3)
    _, texts = boxes_of(painted, checked(figure), size=Size(600, 300))
    boxes = sorted((box for text, box in texts if text.startswith("lane ")), key=lambda box: float(box.y0))
    assert len(boxes) >= 3
    assert all(low.y1 <= high.y0 for low, high in itertools.pairwise(boxes))
