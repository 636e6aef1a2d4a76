"""How far the monotonic clock of another machine is ahead, from round trips.

A trip bounds the offset on both sides: the site read its clock after the trip began and before it ended.  Trips within a short
time share an offset, which lies in the intersection of their bounds (cf. Marzullo, and NTP, RFC 5905): no assumption on
symmetric ways is needed, and the uncertainty is half of what is left.

Over a longer time clocks drift.  A clock that drifts evenly is on a line through the bounds of all trips; which lines there are
bounds where it was at both ends, again without any assumption on the way.  One that doesn't is taken in parts that do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

FEWEST_TRIPS = 20
"""Before the load, and behind it."""
_MOST_DRIFT = 5e-4
"""Of the time: no clock of a machine goes so wrong, the most by which NTP sets one included (RFC 5905)."""
_CHUNKS = 60
"""Parts of the time of which the tightest bounds count: more of them take long, and tell little."""
_FEWEST_OF_LINE = 8
"""Trips that are divided no more."""


class ClockOffset(Struct, frozen=True):
    """ahead_ns: of the site's clock, the middle of its bounds.  within_ns: how far it may be from that.  at_ns: when, on this
    clock.  trips: how many it is made of."""

    ahead_ns: int
    within_ns: int
    at_ns: int
    trips: int


class ClockPath(Struct, frozen=True):
    """How far a clock was ahead over a time.

    knots: instants of this clock, and how far the other one was ahead there; linear in between.  within_ns: how far it may be
    from that, at the worst of them; begin_within_ns: at the first.
    """

    knots: tuple[tuple[int, int], ...]
    within_ns: int
    begin_within_ns: int

    @property
    def drift_ns(self) -> int:
        """How far the clock went away."""
        return self.knots[-1][1] - self.knots[0][1]


class _Bounds(Struct, frozen=True):
    """What a trip says: at *at_ns* the clock was ahead by *low_ns* to *high_ns*."""

    at_ns: int
    low_ns: int
    high_ns: int


class Trips:
    """Round trips with one site, in groups that share an offset."""

    def __init__(self) -> None:
        self._low: list[int] = []
        self._high: list[int] = []
        self._ended_ns: list[int] = []
        self._bounds: list[_Bounds] = []
        self.shortest_ns = 0

    @property
    def count(self) -> int:
        return len(self._low)

    def add(self, sent_ns: int, site_ns: int, back_ns: int) -> None:
        """The site's clock read *site_ns* between *sent_ns* and *back_ns* of this one."""
        self._low.append(site_ns - back_ns)
        self._high.append(site_ns - sent_ns)
        self._ended_ns.append(back_ns)
        took_ns = back_ns - sent_ns
        slack_ns = math.ceil(took_ns * _MOST_DRIFT)  # the clock was read at any time of the trip
        self._bounds.append(_Bounds((sent_ns + back_ns) // 2, site_ns - back_ns - slack_ns, site_ns - sent_ns + slack_ns))
        self.shortest_ns = min(self.shortest_ns or took_ns, took_ns)

    def offset(self, first: int = 0) -> ClockOffset:
        """The offset that the trips from the *first* on share.

        Where their bounds do not overlap, because a clock went faster meanwhile, the offset lies between the two that
        exclude each other.
        """
        low, high = max(self._low[first:]), min(self._high[first:])
        low, high = min(low, high), max(low, high)
        return ClockOffset((low + high) // 2, -(-(high - low) // 2), self._ended_ns[-1], self.count - first)

    def path(self, first_ns: int) -> ClockPath:
        """Where the clock was from the first trip to the last one.

        *first_ns*: how far it was taken to be ahead.  Where no trip contradicts that, it is kept: no drift is known, but what
        there may be is in the uncertainty.
        """
        steady = max(self._low) <= first_ns <= min(self._high)
        parts = _even_parts(_tightest(self._bounds))
        knots, within = [], []
        for at_ns, low, high in chain.from_iterable(parts):
            ahead = first_ns if steady else (low + high) // 2
            knots.append((at_ns, ahead))
            within.append(max(high - ahead, ahead - low))
        return ClockPath(tuple(knots), max(within), within[0])


_Knot = tuple[int, int, int]
"""An instant, and the bounds of the offset there."""


def _tightest(bounds: Sequence[_Bounds]) -> list[_Bounds]:
    """The trips with the tightest bounds, in their order."""
    size = -(-len(bounds) // _CHUNKS)
    kept = []
    for at in range(0, len(bounds), size):
        chunk = bounds[at : at + size]
        tight = max(chunk, key=lambda each: each.low_ns), min(chunk, key=lambda each: each.high_ns)
        kept += sorted({each.at_ns: each for each in tight}.values(), key=lambda each: each.at_ns)
    return kept


def _even_parts(bounds: Sequence[_Bounds]) -> list[list[_Knot]]:
    """The ends of lines through the bounds, one line where they allow it."""
    if (ends := _line(bounds)) is not None:
        return [ends]
    if len(bounds) < 2 * _FEWEST_OF_LINE:
        low, high = sorted((max(each.low_ns for each in bounds), min(each.high_ns for each in bounds)))
        return [[(at_ns, low, high) for at_ns in sorted({bounds[0].at_ns, bounds[-1].at_ns})]]
    half = len(bounds) // 2
    return _even_parts(bounds[:half]) + _even_parts(bounds[half:])


def _line(bounds: Sequence[_Bounds]) -> list[_Knot] | None:
    """Where lines through all bounds begin and end; None where there is none."""
    least, most = -_MOST_DRIFT, _MOST_DRIFT
    for place, one in enumerate(bounds):
        for other in bounds[place + 1 :]:
            if (apart_ns := other.at_ns - one.at_ns) > 0:
                least = max(least, (other.low_ns - one.high_ns) / apart_ns)
                most = min(most, (other.high_ns - one.low_ns) / apart_ns)
    if least > most:
        return None
    ends = []
    for at_ns in sorted({bounds[0].at_ns, bounds[-1].at_ns}):
        ways = [(each, sorted((least * (at_ns - each.at_ns), most * (at_ns - each.at_ns)))) for each in bounds]
        low = max(math.floor(each.low_ns + moved[0]) for each, moved in ways)
        high = min(math.ceil(each.high_ns + moved[1]) for each, moved in ways)
        if low > high:
            return None
        ends.append((at_ns, low, high))
    return ends
