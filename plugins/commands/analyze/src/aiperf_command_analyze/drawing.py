"""The picture of lanes as SVG, without a library.  What lies on the axis of time is one group, which a page may stretch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from msgspec import Struct

from aiperf_command_analyze.lanes import Lane, Row, Steps, busy_spans, counted
from aiperf_command_analyze.sessions import LaneSession, Request, Sessions

LEFT_PX, RIGHT_PX, TOP_PX, WIDTH_PX = 64, 24, 94, 1200
"""Pixels beside and above the lanes, and of the picture."""
PLOT_PX = WIDTH_PX - LEFT_PX - RIGHT_PX
"""Pixels of the axis of time."""
_CURVES_PX, _GAP_PX, _FOOT_PX = 150, 34, 40
"""Pixels of the lower panel, above it, and below it."""
_MOST_LANES_PX = 1800
"""Pixels of all lanes together; of more, all are lower."""
_ROOT_PX, _CHILD_PX, _BETWEEN_PX = 14.0, 9.0, 5.0
"""Pixels of a root's row, of a child's, and between two lanes."""
TITLED = 4000
"""Requests of which each has an element with a text of its own; of more, those that touch are drawn as one."""
_TOUCH_PX = 0.2
"""Pixels: what is nearer is drawn as one, and nothing is narrower."""
_TICKS_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
_SHADES = "first shade: up to the first token; second: after it; thin line: nothing in flight"
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Marks(Struct, frozen=True):
    """What is marked: a limit of sessions, and instants in s with their words."""

    target: int | None = None
    instants: tuple[tuple[float, str], ...] = ()


def clean(text: str) -> str:
    """A text as XML holds it."""
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def svg(title: str, sessions: Sessions, lanes: Sequence[Lane], marks: Marks) -> str:
    """The picture.  *title*: of the run."""
    return "".join(_Picture(title, sessions, lanes, marks).parts())


class _Picture:
    def __init__(self, title: str, sessions: Sessions, lanes: Sequence[Lane], marks: Marks) -> None:
        self._title, self._sessions, self._lanes, self._marks = title, sessions, lanes, marks
        self._span_s = max(sessions.end_s, 1e-6, *(at for at, _ in marks.instants))
        self._count = sum(len(each.requests) for tree in sessions.trees for each in tree.sessions)
        heights = sum(_BETWEEN_PX + _ROOT_PX + _CHILD_PX * (len(lane.rows) - 1) for lane in lanes)
        self._scale = min(1.0, _MOST_LANES_PX / heights)
        self._bottom = TOP_PX + heights * self._scale
        self._base = self._bottom + _GAP_PX + _CURVES_PX

    def parts(self) -> Iterator[str]:
        height = self._base + _FOOT_PX
        words = self._words()
        style = files("aiperf_command_analyze").joinpath("swim_lane.css").read_text()
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height:.0f}" width="{WIDTH_PX}" '
            f'height="{height:.0f}" role="img" aria-labelledby="name about"><title id="name">{clean(self._title)}</title>'
            f'<desc id="about">{clean(words)}</desc><style>{style}</style>'
            f'<rect class="ground" width="100%" height="100%"/>'
            f'<text x="12" y="24" font-size="16" font-weight="600">{clean(self._title)}</text>'
            f'<text class="mute" x="12" y="44">{clean(words)}</text>'
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

    def _words(self) -> str:
        trees = self._sessions.trees
        every = [session for tree in trees for session in tree.sessions]
        failed = sum(each.failed for session in every for each in session.requests)
        several = len(every) > len(trees)
        sized = f"{len(trees):,} trees of {len(every):,} conversations" if several else f"{len(every):,} conversations"
        bad = f", {failed:,} failed" if failed else ""
        return f"{self._count:,} requests{bad} in {sized}, on {len(self._lanes):,} lanes, {_seconds(self._sessions.end_s)}"

    def _legend(self) -> Iterator[str]:
        deepest = max(session.depth for tree in self._sessions.trees for session in tree.sessions)
        failed = any(each.failed for tree in self._sessions.trees for session in tree.sessions for each in session.requests)
        entries = [("d0", "root" if deepest else "request")] + [("d1", "child")] * (deepest > 0)
        entries += [("d2", "deeper")] * (deepest > 1) + [("bad", "failed")] * failed
        x = 12.0
        for name, word in entries:
            yield f'<rect class="{name}" x="{x:.0f}" y="53" width="14" height="10"/>'
            if name != "bad":
                yield f'<rect class="{name} late" x="{x + 14:.0f}" y="53" width="14" height="10"/>'
            yield f'<text x="{x + 32:.0f}" y="62">{word}</text>'
            x += 48 + 7 * len(word)
        yield f'<text class="mute" x="{x:.0f}" y="62">{_SHADES}</text>'

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
        y = float(TOP_PX)
        for lane in self._lanes:
            for row in lane.rows:
                height = (_CHILD_PX if row.tier else _ROOT_PX) * self._scale
                yield from self._drawn_row(row, y, height)
                y += height
            y += _BETWEEN_PX * self._scale

    def _drawn_row(self, row: Row, y: float, height: float) -> Iterator[str]:
        if not row.sessions:
            return
        middle, inner = y + height / 2, max(height - 1.5 * self._scale, 0.4)
        lives = ((self._x(each.start_s), self._x(each.end_s)) for each in row.sessions)
        whole = "".join(f"M{begin:.2f} {middle:.2f}H{end:.2f}" for begin, end in _touching(lives))
        yield f'<path class="life" d="{whole}"/>'
        if self._count <= TITLED:
            for session in row.sessions:
                for request in session.requests:
                    yield self._titled(session, request, y, inner)
            return
        shapes: dict[str, list[tuple[float, float]]] = {}
        for session in row.sessions:
            for request in session.requests:
                for name, begin_s, end_s in _pieces(session, request):
                    shapes.setdefault(name, []).append((self._x(begin_s), self._x(end_s)))
        first_on_top = sorted(shapes.items(), key=lambda shape: ("late" not in shape[0], shape[0]))
        for name, spans in first_on_top:
            path = "".join(
                f"M{begin:.2f} {y:.2f}h{max(end - begin, _TOUCH_PX):.2f}v{inner:.2f}H{begin:.2f}z"
                for begin, end in _touching(sorted(spans))
            )
            yield f'<path class="{name}" d="{path}"/>'

    def _titled(self, session: LaneSession, request: Request, y: float, height: float) -> str:
        text = clean(_described(session, request))
        shapes = "".join(
            f'<rect class="{name}" x="{self._x(begin_s):.2f}" y="{y:.2f}" '
            f'width="{max(self._x(end_s) - self._x(begin_s), _TOUCH_PX):.2f}" height="{height:.2f}"/>'
            for name, begin_s, end_s in _pieces(session, request)
        )
        return f"<g><title>{text}</title>{shapes}</g>"

    def _curves(self) -> tuple[Steps, Steps, Steps]:
        """Sessions with a request in flight, sessions begun and not ended, requests in flight."""
        trees = self._sessions.trees
        busy = counted(span for tree in trees for span in busy_spans(tree))
        alive = counted((tree.start_s, tree.end_s) for tree in trees)
        requests = (each for tree in trees for session in tree.sessions for each in session.requests)
        return busy, alive, counted((each.start_s, each.end_s) for each in requests)

    def _drawn_curves(self) -> Iterator[str]:
        busy, alive, flying = self._curves()
        self._most = max((*busy.values, *alive.values, *flying.values, self._marks.target or 0, 1))
        yield f'<path class="grid" d="M0 {self._base:.1f}H{PLOT_PX}"/>'
        for name, curve in (("idle", alive), ("busy", busy)):
            yield f'<path class="{name}" d="{self._stepped(curve, closed=True)}"/>'
        yield f'<path class="flying" d="{self._stepped(flying, closed=False)}"/>'

    def _height(self, value: float) -> float:
        return self._base - value / self._most * _CURVES_PX

    def _stepped(self, curve: Steps, *, closed: bool) -> str:
        pieces = [f"M0 {self._base:.1f}"]
        last = ""
        for at_s, value in zip(curve.at_s, curve.values, strict=True):
            step = f"H{self._x(at_s):.1f}"
            if step == last:  # several changes within a tenth of a pixel: the last one stays
                pieces.pop()
            else:
                pieces.append(step)
            pieces.append(f"V{self._height(value):.1f}")
            last = step
        return "".join(pieces) + ("z" if closed else "")

    def _lines(self) -> Iterator[str]:
        for at_s, _ in self._marks.instants:
            yield f'<path class="mark" d="M{self._x(at_s):.2f} {TOP_PX - 4}V{self._base:.1f}"/>'
        if self._marks.target is not None:
            yield f'<path class="mark" d="M0 {self._height(self._marks.target):.1f}H{PLOT_PX}"/>'

    def _axes(self) -> Iterator[str]:
        for at_s in self.ticks():
            yield (
                f'<text class="mute" data-s="{at_s:g}" x="{LEFT_PX + self._x(at_s):.1f}" y="{self._base + 16:.0f}" '
                f'text-anchor="middle">{at_s:g}</text>'
            )
        middle = LEFT_PX + PLOT_PX / 2
        yield f'<text class="mute" x="{middle:.0f}" y="{self._base + 32:.0f}" text-anchor="middle">time in s</text>'
        for at_s, word in self._marks.instants:
            side = "end" if self._x(at_s) > PLOT_PX * 0.8 else "start"
            x = LEFT_PX + self._x(at_s) + (-4 if side == "end" else 4)
            at = f'data-s="{at_s:g}" x="{x:.1f}" y="{TOP_PX - 6}" text-anchor="{side}"'
            yield f'<text class="marked" {at}>{clean(word)}</text>'
        yield from self._scale_of_curves()
        y, every = float(TOP_PX), math.ceil(13 / ((_ROOT_PX + _BETWEEN_PX) * self._scale))
        for number, lane in enumerate(self._lanes):
            height = (_ROOT_PX + _CHILD_PX * (len(lane.rows) - 1)) * self._scale
            if number % every == 0:
                middle = y + min(height / 2, _ROOT_PX / 2) + 4
                yield f'<text class="mute" x="{LEFT_PX - 8}" y="{middle:.1f}" text-anchor="end">{number}</text>'
            y += height + _BETWEEN_PX * self._scale

    def _scale_of_curves(self) -> Iterator[str]:
        for value in sorted({0, self._most, *([self._marks.target] if self._marks.target else [])}):
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
        if self._marks.target is not None:
            yield f'<path class="mark" d="M{x:.0f} {y - 4:.0f}h14"/><text x="{x + 18:.0f}" y="{y:.0f}">target</text>'


def _pieces(session: LaneSession, request: Request) -> Iterator[tuple[str, float, float]]:
    """Class, begin and end in s of the parts of a request: up to the first token, and after it."""
    if request.failed:
        yield "bad", request.start_s, request.end_s
        return
    name = f"d{min(session.depth, 2)}"
    first = request.first_s
    if first is None or not request.start_s <= first <= request.end_s:
        yield f"{name} late", request.start_s, request.end_s
        return
    yield name, request.start_s, first
    yield f"{name} late", first, request.end_s


def _described(session: LaneSession, request: Request) -> str:
    """What a pointer is shown of a request."""
    end = f"{'failed after ' * request.failed}{_seconds(request.end_s - request.start_s)}"
    first = "" if request.first_s is None else f", first token after {_seconds(request.first_s - request.start_s)}"
    prompt, answer = request.tokens
    sizes = "" if prompt is None else f", {prompt:,} tokens in" + ("" if answer is None else f", {answer:,} out")
    deep = f", depth {session.depth}" if session.depth else ""
    return f"{session.conversation}, turn {request.turn}{deep}: at {request.start_s:.3f} s, {end}{first}{sizes}"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if value >= 100 else f"{value:.3g} s"


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
