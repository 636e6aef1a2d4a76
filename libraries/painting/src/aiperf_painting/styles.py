"""Colours, dashes, markers and hatches: series that differ in all of them can be told apart in grey, too."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from aiperf import Figure, PlotSeries
from aiperf.sdk.redaction import redact
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

# Okabe and Ito's colours, which people who see few colours can tell apart; bright and dark ones in turn, for print in grey.
_ON_WHITE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D31")
_ON_BLACK = ("#56B4E9", "#E69F00", "#2FC79A", "#E39AC4", "#FF8A4C", "#A9D8F7", "#C9A66B")
_BASELINES = ("#7F7F7F", "#A6A6A6", "#5E5E5E", "#C4C4C4")
"""Of series whose role is to be compared with."""
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
_LEAST_SHADE = 0.27
"""Part of a heat map's colours that are left out, as the paper has nearly the same."""
_LEAST_DPI, _INCHES = 96.0, 10.0
"""Dots per inch of a small picture, and the width of a larger one in inches."""
FEW_POINTS, _FEW_IN_ALL = 60, 200
"""Of a curve each of whose points is marked, and of all clouds of a picture whose points are large."""
SMALL, LARGE = 8.0, 9.0
"""Points of letters of the caption and of a legend outside the data, and of one inside."""
_MOST_CHARACTERS, _LEAST_CHARACTERS = 60, 12
"""Of a name."""


class Size(NamedTuple):
    """Pixels of a picture."""

    width: int = 1600
    height: int = 800

    @property
    def dpi(self) -> float:
        """Dots per inch: a wide picture is as a narrow one, and finer; below 960 pixels there is less room."""
        return max(_LEAST_DPI, self.width / _INCHES)

    @property
    def inches(self) -> tuple[float, float]:
        return self.width / self.dpi, self.height / self.dpi


class Theme(NamedTuple):
    """Colours.  shades: matplotlib's name of those of a heat map."""

    paper: str
    ink: str
    grid: str
    shades: str
    colours: tuple[str, ...]

    @property
    def colour_map(self) -> ListedColormap:
        """The colours of a heat map, without those that are nearly that of the paper: one request is seen, too."""
        return ListedColormap(colormaps[self.shades](np.linspace(_LEAST_SHADE, 1.0, 256)), name=f"visible {self.shades}")


THEMES: Mapping[str, Theme] = MappingProxyType({
    "light": Theme("#ffffff", "#222222", "#dddddd", "Blues", _ON_WHITE),
    "dark": Theme("#1b1d21", "#e8e8e8", "#3a3d43", "cividis", _ON_BLACK),
})  # fmt: skip


class Style(NamedTuple):
    """How a series looks.  dashes: as matplotlib takes them.  large: whether points are, as the picture has few."""

    colour: str
    dashes: Any
    marker: str
    hatch: str
    large: bool = False


def styles(figure: Figure, theme: Theme) -> dict[str, Style]:
    """A style for each series by name; series of one group share a colour."""
    made: dict[str, Style] = {}
    groups: dict[str, tuple[str, int]] = {}
    members: dict[str, int] = {}
    large = sum(len(series.x) for series in figure.series if series.kind == "points") <= _FEW_IN_ALL
    fresh = {False: _endless(theme.colours), True: _endless(_BASELINES)}
    for number, series in enumerate(figure.series):
        key = series.group or f"\0{series.name}"
        if key not in groups:
            groups[key] = next(fresh[series.role == "baseline"]), len(groups)
        colour, turn = groups[key]
        turn += members.setdefault(key, 0)
        members[key] += 1
        marker = "none" if is_part(series, figure) or _is_frontier(series, figure) else _MARKERS[number % len(_MARKERS)]
        made[series.name] = Style(colour, _DASHES[turn % len(_DASHES)], marker, _HATCHES[number % len(_HATCHES)], large)
    return made


def is_part(series: PlotSeries, figure: Figure) -> bool:
    """Whether the series has the intervals of another one of its group, which shows the points and has the name."""
    return series.kind == "error" and any(True for _ in _others(series, figure))


def _is_frontier(series: PlotSeries, figure: Figure) -> bool:
    """Whether the series joins points that another one of its group shows."""
    return series.kind == "path" and any(other.kind == "points" for other in _others(series, figure))


def _others(series: PlotSeries, figure: Figure) -> Iterator[PlotSeries]:
    """The other series of its group."""
    return (other for other in figure.series if other is not series and series.group and other.group == series.group)


def _endless(colours: tuple[str, ...]) -> Iterator[str]:
    while True:
        yield from colours


def shown(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text as a picture has it: one line, without secrets, control characters visible, a long one cut in its middle."""
    plain = "".join("�" if unicodedata.category(each)[0] == "C" and each not in "\t\n" else each for each in redact(text))
    plain = " ".join(plain.split())
    keep = most // 2 - 1
    return plain if len(plain) <= most else f"{plain[:keep]} … {plain[-keep:]}"


def name_of(series: PlotSeries, inches: float = math.inf) -> str:
    """The name of a series in a legend, shortened to so many inches; a few letters stay in any case."""
    most, name = _MOST_CHARACTERS, shown(series.name)
    while (long := inches_of(name, SMALL)) > inches and most > _LEAST_CHARACTERS:
        most = max(_LEAST_CHARACTERS, int(min(len(name), most) * inches / long) - 1)
        name = shown(series.name, most)
    return name


def inches_of(text: str, points: float) -> float:
    """Length of a text in letters of so many points."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=points), False)
    return float(width) / 72
