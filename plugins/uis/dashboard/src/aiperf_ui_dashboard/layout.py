"""Where each pane stands on a screen of any size."""

from __future__ import annotations

from msgspec import Struct

HEADER, FOOTER, PROGRESS, METRICS, WORKERS, TELEMETRY, LOG, FAILURES, GOODPUT, CHARTS, KEYS = PANES = (
    "header", "footer", "progress", "metrics", "workers", "telemetry", "log", "failures", "goodput", "charts", "keys",
)  # fmt: skip
OVERVIEW = "overview"
WIDE, HIGH = 120, 30
"""From this size on the overview has two columns."""
_CHARTS_LINES = 8


class Place(Struct, frozen=True):
    """Cells of a pane: its left column, its upper line, its width and height."""

    x: int
    y: int
    width: int
    height: int


def arranged(view: str, width: int, height: int, *, log: bool = True, metrics: int = 8) -> dict[str, Place]:
    """The panes that are seen, which cover the screen without overlapping.

    view: OVERVIEW, or the pane that has the screen.  log: whether the overview has the log.  metrics: lines that the
    metrics would fill.
    """
    head = 2 if height >= 6 else 1
    foot = 1 if height >= 8 else 0
    places = {HEADER: Place(0, 0, width, min(head, height))}
    if foot:
        places[FOOTER] = Place(0, height - foot, width, foot)
    rest = height - head - foot
    if rest <= 0:
        return places
    if view != OVERVIEW:
        return places | {view: Place(0, head, width, rest)}
    if width >= WIDE and height >= HIGH:
        return places | _two_columns(width, head, rest, log, metrics)
    return places | _stacked(width, head, rest, log, metrics)


def _two_columns(width: int, y: int, rest: int, log: bool, metrics: int) -> dict[str, Place]:
    below = max(5, rest // 5) if log else 0
    upper = rest - below
    left = max(55, width // 3)
    right = width - left - 2
    first = min(12, upper // 2)
    second = min(12, (upper - first) // 2)
    top = min(metrics + 1, upper - _CHARTS_LINES)
    places = {
        PROGRESS: Place(0, y, left, first), GOODPUT: Place(0, y + first, left, second),
        FAILURES: Place(0, y + first + second, left, upper - first - second),
        METRICS: Place(left + 2, y, right, top), CHARTS: Place(left + 2, y + top, right, upper - top),
    }  # fmt: skip
    return places | ({LOG: Place(0, y + upper, width, below)} if log else {})


def _stacked(width: int, y: int, rest: int, log: bool, metrics: int) -> dict[str, Place]:
    """Progress first, then metrics; curves and log where there is space left."""
    if rest < 8:
        return {PROGRESS: Place(0, y, width, rest)}
    first = 6
    below = {CHARTS: 4, LOG: 4 if log else 0} if rest >= 18 else {}
    second = rest - first - sum(below.values())
    if below and second > metrics + 1:
        below[CHARTS] += second - (metrics + 1)
        second = metrics + 1
    places, at = {}, y
    for pane, lines in ((PROGRESS, first), (METRICS, second), *below.items()):
        if lines:
            places[pane] = Place(0, at, width, lines)
            at += lines
    return places


__all__ = ["CHARTS", "FAILURES", "FOOTER", "GOODPUT", "HEADER", "KEYS", "LOG", "METRICS", "OVERVIEW", "PANES", "PROGRESS",
    "TELEMETRY", "WORKERS", "Place", "arranged"]  # fmt: skip
