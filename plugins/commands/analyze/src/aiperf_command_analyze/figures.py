"""Sessions as figures: requests as bars in lanes, with their stages, and curves of what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from aiperf import Axis, Figure, PlotSeries
from aiperf.sdk import figures
from aiperf.sdk.figures import ReferenceLine

from aiperf_command_analyze.lanes import Lane, busy_spans, counted
from aiperf_command_analyze.sessions import LaneSession, Request, Sessions

TITLED = 4000
"""Requests of which each has a text of its own."""
LIFE, FAILED = "conversation, nothing in flight", "failed"
"""Series of the lives of conversations, below the requests, and of requests that failed."""
STAGES = ("root, up to the first token", "root, after it", "child, up to the first token", "child, after it",
          "deeper, up to the first token", "deeper, after it", FAILED)  # fmt: skip
"""Series of the parts of requests: two for each depth, 2 and more as one."""
BUSY, ALIVE, FLYING = "sessions with a request in flight", "sessions begun and not ended", "requests in flight"
"""Series of the curves."""
_DEEPEST = 2
"""The last depth that has stages of its own."""


class _Bars:
    """Bars of a series in the making; those of a request have its number."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.lanes: list[int] = []
        self.numbers: list[int] = []
        self.labels: list[str] = []

    def add(self, low: float, high: float, lane: int, number: int, label: str = "") -> None:
        self.low.append(low)
        self.high.append(max(low, high))
        self.lanes.append(lane)
        self.numbers.append(number)
        self.labels.append(label)

    def series(self, name: str, points: str) -> PlotSeries:
        low, high, lane = (np.array(values, dtype=np.float64) for values in (self.low, self.high, self.lanes))
        labels = tuple(self.labels) if any(self.labels) else ()
        rows = np.array(self.numbers, dtype=np.int64)
        return PlotSeries(
            name, (low + high) / 2, lane, "lanes", x_low=low, x_high=high, labels=labels, points=points, rows=rows
        )  # fmt: skip


def lanes_figure(title: str, sessions: Sessions, lanes: Sequence[Lane]) -> Figure:
    """Requests in lanes from the top, a root's above those of its descendants; *rows* of a series number the requests.

    Each request has a label where there are few (:data:`TITLED`).  The note says how many there are of everything.
    """
    every = sum(len(each.requests) for tree in sessions.trees for each in tree.sessions)
    bars = {name: _Bars() for name in (LIFE, *STAGES)}
    shown: list[figures.Lane] = []
    number = 0
    for place, lane in enumerate(lanes):
        for row in lane.rows:
            for session in row.sessions:
                bars[LIFE].add(session.start_s, session.end_s, len(shown), -1)
                for request in session.requests:
                    label = _described(session, request) if every <= TITLED else ""
                    for name, begin_s, end_s in _pieces(session, request):
                        bars[name].add(begin_s, end_s, len(shown), number, label)
                    number += 1
            shown.append(figures.Lane("" if row.tier else f"{place}", min(row.tier, 1)))
    drawn = tuple(made.series(name, "request" if name != LIFE else "") for name, made in bars.items() if made.low)
    axes, notes = (Axis("time (s)"), Axis("lane")), (_counted(sessions, lanes),)
    return figures.checked(Figure(title, *axes, drawn, lanes=tuple(shown), notes=notes))


def curves_figure(
    title: str, sessions: Sessions, target: int | None, instants: Iterable[tuple[float, str]]
) -> Figure | None:
    """What is under way over time; None where nothing lasts.  *target*: a limit of sessions.  *instants*: s and words."""
    trees = sessions.trees
    requests = [each for tree in trees for session in tree.sessions for each in session.requests]
    curves = {
        BUSY: counted(span for tree in trees for span in busy_spans(tree)),
        ALIVE: counted((tree.start_s, tree.end_s) for tree in trees),
        FLYING: counted((each.start_s, each.end_s) for each in requests),
    }
    series = tuple(
        PlotSeries(name, np.array(curve.at_s), np.array(curve.values, dtype=np.float64), "steps")
        for name, curve in curves.items() if curve.at_s
    )  # fmt: skip
    if not series:
        return None
    lines = [ReferenceLine("x", at_s, word, seconds(at_s)) for at_s, word in instants]
    lines += [ReferenceLine("y", float(target), "target", f"{target}")] if target is not None else []
    return figures.checked(Figure(title, Axis("time (s)"), Axis("sessions, requests"), series, lines=tuple(lines)))


def _counted(sessions: Sessions, lanes: Sequence[Lane]) -> str:
    every = [session for tree in sessions.trees for session in tree.sessions]
    requests = [each for session in every for each in session.requests]
    failed = sum(each.failed for each in requests)
    several = len(every) > len(sessions.trees)
    sized = f"{len(sessions.trees):,} trees of {len(every):,} conversations" if several else f"{len(every):,} conversations"
    bad = f", {failed:,} failed" if failed else ""
    return f"{len(requests):,} requests{bad} in {sized}, on {len(lanes):,} lanes, {seconds(sessions.end_s)}"


def _pieces(session: LaneSession, request: Request) -> Iterator[tuple[str, float, float]]:
    """Stage, begin and end in s of the parts of a request: up to the first token, and after it."""
    if request.failed:
        yield FAILED, request.start_s, request.end_s
        return
    before, after = STAGES[2 * min(session.depth, _DEEPEST) :][:2]
    first = request.first_s
    if first is None or not request.start_s <= first <= request.end_s:
        yield after, request.start_s, request.end_s
        return
    yield before, request.start_s, first
    yield after, first, request.end_s


def _described(session: LaneSession, request: Request) -> str:
    """What a pointer is shown of a request."""
    end = f"{'failed after ' * request.failed}{seconds(request.end_s - request.start_s)}"
    first = "" if request.first_s is None else f", first token after {seconds(request.first_s - request.start_s)}"
    prompt, answer = request.tokens
    sizes = "" if prompt is None else f", {prompt:,} tokens in" + ("" if answer is None else f", {answer:,} out")
    deep = f", depth {session.depth}" if session.depth else ""
    return f"{session.conversation}, turn {request.turn}{deep}: at {request.start_s:.3f} s, {end}{first}{sizes}"


def seconds(value: float) -> str:
    return f"{value:,.1f} s" if value >= 100 else f"{value:.3g} s"


__all__ = ["ALIVE", "BUSY", "FAILED", "FLYING", "LIFE", "STAGES", "TITLED", "curves_figure", "lanes_figure", "seconds"]
