"""Figures of lanes and curves as SVG, without a library.  What lies on the axis of time is a group that a page may stretch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

import numpy as np
from aiperf import Figure, PlotSeries

from aiperf_command_analyze.figures import ALIVE, BUSY, FAILED, FLYING, LIFE, STAGES, TITLED

LEFT_PX, RIGHT_PX, TOP_PX, WIDTH_PX = 64, 24, 94, 1200
"""Pixels beside and above the lanes, and of the picture."""
PLOT_PX = WIDTH_PX - LEFT_PX - RIGHT_PX
"""Pixels of the axis of time."""
_CURVES_PX, _GAP_PX, _FOOT_PX = 150, 34, 40
"""Pixels of the lower panel, above it, and below it."""
_MOST_LANES_PX = 1800
"""Pixels of all lanes together; of more, all are lower."""
_ROOT_PX, _CHILD_PX, _BETWEEN_PX = 14.0, 9.0, 5.0
"""Pixels of a root's lane, of a child's, and between two roots."""
_TOUCH_PX = 0.2
"""Pixels: what is nearer is drawn as one, and nothing is narrower."""
_TICKS_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
_CLASSES = dict(zip(STAGES, ("d0", "d0 late", "d1", "d1 late", "d2", "d2 late", "bad"), strict=True))
"""Looks of the stages in the style sheet; of more than a few requests those up to the first token lie above the others."""
_SHADES = "first shade: up to the first token; second: after it; thin line: nothing in flight"
_CURVES = {ALIVE: "idle", BUSY: "busy", FLYING: "flying"}
"""Looks of the curves, from the back."""
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_Spans = list[tuple[float, float, int, str]]
"""Begin and end in s, number of the request, label."""


def clean(text: str) -> str:
    """A text as XML holds it."""
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def svg(lanes: Figure, curves: Figure | None) -> str:
    """The picture of :func:`aiperf_command_analyze.figures.lanes_figure`, and below it that of the curves."""
    return "".join(_Picture(lanes, curves).parts())


class _Picture:
    def __init__(self, lanes: Figure, curves: Figure | None) -> None:
        self._figure, self._series = lanes, {one.name: one for one in lanes.series}
        self._curves = {} if curves is None else {one.name: one for one in curves.series}
        lines = () if curves is None else curves.lines
        self._instants = [(line.value, line.label) for line in lines if line.axis == "x"]
        self._target = next((int(line.value) for line in lines if line.axis == "y"), None)
        ends = (float(one.x_high.max()) for one in lanes.series if one.x_high is not None)
        self._span_s = max(*ends, 1e-6, *(at_s for at_s, _ in self._instants))
        numbers = [one.rows for one in lanes.series if one.name != LIFE and one.rows is not None]
        self._count = len(np.unique(np.concatenate(numbers)))
        heights = sum(_CHILD_PX if lane.depth else _BETWEEN_PX + _ROOT_PX for lane in lanes.lanes)
        self._scale = min(1.0, _MOST_LANES_PX / heights)
        self._bottom = TOP_PX + heights * self._scale
        self._base = self._bottom + _GAP_PX + _CURVES_PX

    def parts(self) -> Iterator[str]:
        height, title, words = self._base + _FOOT_PX, clean(self._figure.title), clean(" ".join(self._figure.notes))
        style = files("aiperf_command_analyze").joinpath("swim_lane.css").read_text()
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height:.0f}" width="{WIDTH_PX}" '
            f'height="{height:.0f}" role="img" aria-labelledby="name about"><title id="name">{title}</title>'
            f'<desc id="about">{words}</desc><style>{style}</style>'
            f'<rect class="ground" width="100%" height="100%"/>'
            f'<text x="12" y="24" font-size="16" font-weight="600">{title}</text>'
            f'<text class="mute" x="12" y="44">{words}</text>'
        )
        yield from self._legend()
        yield f'<g id="time" transform="translate({LEFT_PX} 0)">'
        yield from self._grid()
        yield from self._drawn_lanes()
        yield from self._drawn_curves()
        yield from self._lines()
        yield "</g>"
        yield from self._axes()
        yield "</svg>\n"

    def _legend(self) -> Iterator[str]:
        entries = [("d0", "root")]
        entries += [(f"d{depth}", word) for depth, word in ((1, "child"), (2, "deeper")) if self._has(depth)]
        if len(entries) == 1:
            entries = [("d0", "request")]
        entries += [("bad", "failed")] * (FAILED in self._series)
        x = 12.0
        for name, word in entries:
            yield f'<rect class="{name}" x="{x:.0f}" y="53" width="14" height="10"/>'
            if name != "bad":
                yield f'<rect class="{name} late" x="{x + 14:.0f}" y="53" width="14" height="10"/>'
            yield f'<text x="{x + 32:.0f}" y="62">{word}</text>'
            x += 48 + 7 * len(word)
        yield f'<text class="mute" x="{x:.0f}" y="62">{_SHADES}</text>'

    def _has(self, depth: int) -> bool:
        """Whether a request of the depth was answered."""
        return any(name in self._series for name in STAGES[2 * depth : 2 * depth + 2])

    def _x(self, at_s: float) -> float:
        return at_s / self._span_s * PLOT_PX

    def ticks(self) -> list[float]:
        step = next((step for step in _TICKS_S if self._span_s / step <= 10), self._span_s / 10)
        return [number * step for number in range(int(self._span_s / step + 1e-9) + 1)]

    def _grid(self) -> Iterator[str]:
        for at_s in self.ticks():
            x = self._x(at_s)
            yield f'<path class="grid" d="M{x:.2f} {TOP_PX - 4}V{self._base:.1f}"/>'

    def _drawn_lanes(self) -> Iterator[str]:
        found = {name: _by_lane(one) for name, one in self._series.items()}
        for lane, y, height in self._places():
            if lane not in found[LIFE]:
                continue
            middle, inner = y + height / 2, max(height - 1.5 * self._scale, 0.4)
            lives = ((self._x(begin), self._x(end)) for begin, end, *_ in found[LIFE][lane])
            whole = "".join(f"M{begin:.2f} {middle:.2f}H{end:.2f}" for begin, end in _touching(lives))
            yield f'<path class="life" d="{whole}"/>'
            mine = {_CLASSES[name]: found[name][lane] for name in STAGES if name in found and lane in found[name]}
            yield from (self._titled if self._count <= TITLED else self._joined)(mine, y, inner)

    def _places(self) -> Iterator[tuple[int, float, float]]:
        """Each lane with its upper edge and its height in pixels."""
        y = float(TOP_PX)
        for number, lane in enumerate(self._figure.lanes):
            if number and not lane.depth:
                y += _BETWEEN_PX * self._scale
            height = (_CHILD_PX if lane.depth else _ROOT_PX) * self._scale
            yield number, y, height
            y += height

    def _joined(self, mine: dict[str, _Spans], y: float, height: float) -> Iterator[str]:
        """The bars of a lane by their looks, those that touch as one."""
        for name, spans in sorted(mine.items(), key=lambda shape: ("late" not in shape[0], shape[0])):
            path = "".join(
                f"M{begin:.2f} {y:.2f}h{max(end - begin, _TOUCH_PX):.2f}v{height:.2f}H{begin:.2f}z"
                for begin, end in _touching(sorted((self._x(begin_s), self._x(end_s)) for begin_s, end_s, *_ in spans))
            )
            yield f'<path class="{name}" d="{path}"/>'

    def _titled(self, mine: dict[str, _Spans], y: float, height: float) -> Iterator[str]:
        """The bars of a lane, those of a request together, with its text."""
        requests: dict[int, list[str]] = {}
        for name, spans in mine.items():
            for begin_s, end_s, number, label in spans:
                wide = max(self._x(end_s) - self._x(begin_s), _TOUCH_PX)
                requests.setdefault(number, [f"<title>{clean(label)}</title>"]).append(
                    f'<rect class="{name}" x="{self._x(begin_s):.2f}" y="{y:.2f}" width="{wide:.2f}" height="{height:.2f}"/>'
                )
        for number in sorted(requests):
            yield f"<g>{''.join(requests[number])}</g>"

    def _drawn_curves(self) -> Iterator[str]:
        highest = [int(one.y.max()) for one in self._curves.values()]
        self._most = max((*highest, self._target or 0, 1))
        yield f'<path class="grid" d="M0 {self._base:.1f}H{PLOT_PX}"/>'
        for name, look in _CURVES.items():
            yield f'<path class="{look}" d="{self._stepped(self._curves.get(name), closed=name != FLYING)}"/>'

    def _height(self, value: float) -> float:
        return self._base - value / self._most * _CURVES_PX

    def _stepped(self, curve: PlotSeries | None, *, closed: bool) -> str:
        pieces = [f"M0 {self._base:.1f}"]
        last = ""
        for at_s, value in () if curve is None else zip(curve.x.tolist(), curve.y.tolist(), strict=True):
            step = f"H{self._x(at_s):.1f}"
            if step == last:  # several changes within a tenth of a pixel: the last one stays
                pieces.pop()
            else:
                pieces.append(step)
            pieces.append(f"V{self._height(value):.1f}")
            last = step
        return "".join(pieces) + ("z" if closed else "")

    def _lines(self) -> Iterator[str]:
        for at_s, _ in self._instants:
            yield f'<path class="mark" d="M{self._x(at_s):.2f} {TOP_PX - 4}V{self._base:.1f}"/>'
        if self._target is not None:
            yield f'<path class="mark" d="M0 {self._height(self._target):.1f}H{PLOT_PX}"/>'

    def _axes(self) -> Iterator[str]:
        for at_s in self.ticks():
            yield (
                f'<text class="mute" data-s="{at_s:g}" x="{LEFT_PX + self._x(at_s):.1f}" y="{self._base + 16:.0f}" '
                f'text-anchor="middle">{at_s:g}</text>'
            )
        middle = LEFT_PX + PLOT_PX / 2
        yield f'<text class="mute" x="{middle:.0f}" y="{self._base + 32:.0f}" text-anchor="middle">time in s</text>'
        for at_s, word in self._instants:
            side = "end" if self._x(at_s) > PLOT_PX * 0.8 else "start"
            x = LEFT_PX + self._x(at_s) + (-4 if side == "end" else 4)
            at = f'data-s="{at_s:g}" x="{x:.1f}" y="{TOP_PX - 6}" text-anchor="{side}"'
            yield f'<text class="marked" {at}>{clean(word)}</text>'
        yield from self._scale_of_curves()
        every = math.ceil(13 / ((_ROOT_PX + _BETWEEN_PX) * self._scale))
        groups: list[list[float]] = []
        for lane, y, height in self._places():
            if self._figure.lanes[lane].depth:
                groups[-1][2] += height
            else:
                groups.append([lane, y, height])
        for root, y, height in groups[::every]:
            middle = y + min(height / 2, _ROOT_PX / 2) + 4
            name = clean(self._figure.lanes[int(root)].name)
            yield f'<text class="mute" x="{LEFT_PX - 8}" y="{middle:.1f}" text-anchor="end">{name}</text>'

    def _scale_of_curves(self) -> Iterator[str]:
        for value in sorted({0, self._most, *([self._target] if self._target else [])}):
            y = self._height(value) + 4
            yield f'<text class="mute" x="{LEFT_PX - 8}" y="{y:.1f}" text-anchor="end">{value}</text>'
        y = self._bottom + _GAP_PX - 10
        x = float(LEFT_PX)
        entries = (("busy", "sessions with a request in flight"), ("idle", "idle sessions"), ("", "requests in flight"))
        for name, word in entries:
            shape = (
                f'<rect class="{name}" x="{x:.0f}" y="{y - 9:.0f}" width="14" height="10"/>' if name
                else f'<path class="flying" d="M{x:.0f} {y - 4:.0f}h14"/>'
            )  # fmt: skip
            yield f'{shape}<text x="{x + 18:.0f}" y="{y:.0f}">{word}</text>'
            x += 36 + 6.2 * len(word)
        if self._target is not None:
            yield f'<path class="mark" d="M{x:.0f} {y - 4:.0f}h14"/><text x="{x + 18:.0f}" y="{y:.0f}">target</text>'


def _by_lane(one: PlotSeries) -> dict[int, _Spans]:
    """The bars of a series by lane, in their order."""
    assert one.x_low is not None and one.x_high is not None and one.rows is not None
    found: dict[int, _Spans] = {}
    labels = one.labels or ("",) * len(one.x)
    columns = (one.y.astype(int).tolist(), one.x_low.tolist(), one.x_high.tolist(), one.rows.tolist(), labels)
    for lane, low, high, number, label in zip(*columns, strict=True):
        found.setdefault(lane, []).append((low, high, number, label))
    return found


def _touching(spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Ascending spans, those that touch as one."""
    whole: tuple[float, float] | None = None
    for begin, end in spans:
        if whole is not None and begin - whole[1] < _TOUCH_PX:
            whole = whole[0], max(whole[1], end)
        else:
            if whole is not None:
                yield whole
            whole = begin, end
    if whole is not None:
        yield whole
