"""Which counters of a target count each request, learned from one plan, and whether they have counted all of the next one.

A server counts a request when its last byte is out, or some time later.  Behind the last phase two samples that agree, 0.1 s
apart, tell that it has counted all.  Where a plan before has shown counters that grew by one for each request, and that none
lagged behind the answers, these tell it in the first one: each of them has grown by the requests of the phase, and the sample
that is to agree comes 10 ms later.  A counter that lags, or another client, breaks the equality, and it comes 0.1 s later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from aiperf.sdk.telemetry import Histogram, Point, SeriesKind
from msgspec import Struct

from aiperf_companion_telemetry.messages import BEGIN, END, Edge
from aiperf_companion_telemetry.targets import Taken


class _Target(Struct):
    """A target.  known: names of the counters that count each request, none where they aren't known.
    begin, first, last: all counters at the begin of the phase, in the first sample behind its end, and in the latest one."""

    known: frozenset[str] = frozenset()
    begin: dict[str, float] | None = None
    first: dict[str, float] | None = None
    last: dict[str, float] | None = None


class Exact:
    """What is known of the counters of all targets of a source, from plan to plan."""

    def __init__(self) -> None:
        self._targets: defaultdict[int, _Target] = defaultdict(_Target)
        self._edge: Edge | None = None

    def begin(self) -> None:
        """Another plan begins."""
        for target in self._targets.values():
            target.begin = target.first = None

    def reach(self, edge: Edge) -> None:
        """A phase is about to begin, or has ended."""
        self._edge = edge

    def counted(self, taken: Taken, *, agrees: bool) -> bool:
        """Whether all requests of the phase are counted for sure in this sample, by what earlier plans have shown.

        agrees: its counters of requests are those of the sample before.
        """
        target, at, edge = self._targets[taken.target], taken.moment.edge, self._edge
        if taken.points is None:
            self._targets[taken.target] = _Target()
            return False
        if at is None and taken.moment.phase >= 0:
            return False  # beside the load
        now = _totals(taken.points)
        if at == BEGIN:
            target.begin, target.first = now, None
        elif at is None:
            self._watch(target, now)
        elif edge is not None and edge.edge == END and edge.last and edge.requests and target.begin is not None:
            return self._ended(target, now, edge.requests, agrees=agrees)
        return False

    @staticmethod
    def _watch(target: _Target, now: dict[str, float]) -> None:
        """Between two plans: counters that still grow have lagged, or count others' requests."""
        if target.last is not None and now != target.last:
            target.known = frozenset()

    @staticmethod
    def _ended(target: _Target, now: dict[str, float], requests: int, *, agrees: bool) -> bool:
        begin = target.begin or {}
        each = frozenset(name for name, total in now.items() if total - begin.get(name, 0.0) == requests)
        target.last = now
        if target.first is None:
            target.first = now
            return bool(target.known) and target.known <= each
        if target.first != now:
            target.known = frozenset()
        elif agrees:
            target.known = target.known & each or each
        return False


def _totals(points: Iterable[Point]) -> dict[str, float]:
    """How much each counter of requests, and how many observations each histogram of them has; over all series of the name."""
    totals: defaultdict[str, float] = defaultdict(float)
    for point in points:
        value = point.value
        if point.flows or point.at_ns is not None:
            continue
        if isinstance(value, Histogram):
            totals[point.name] += value.counts[-1] if value.counts else 0.0
        elif point.kind is SeriesKind.COUNTER and isinstance(value, int | float):
            totals[point.name] += value
    return dict(totals)
