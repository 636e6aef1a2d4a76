"""How far the monotonic clock of another machine is ahead, from round trips.

A trip bounds the offset on both sides: the site read its clock after the trip began and before it ended.  Trips within a short
time share an offset, which lies in the intersection of their bounds (cf. Marzullo, and NTP, RFC 5905): no assumption on
symmetric ways is needed, and the uncertainty is half of what is left.
"""

from __future__ import annotations

from msgspec import Struct

FEWEST_TRIPS = 20
"""Before the load, and behind it."""


class ClockOffset(Struct, frozen=True):
    """ahead_ns: of the site's clock, the middle of its bounds.  within_ns: how far it may be from that.  at_ns: when, on this
    clock.  trips: how many it is made of."""

    ahead_ns: int
    within_ns: int
    at_ns: int
    trips: int


class Trips:
    """Round trips with one site, in groups that share an offset."""

    def __init__(self) -> None:
        self._low: list[int] = []
        self._high: list[int] = []
        self._ended_ns: list[int] = []
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
        self.shortest_ns = min(self.shortest_ns or took_ns, took_ns)

    def offset(self, first: int = 0) -> ClockOffset:
        """The offset that the trips from the *first* on share.

        Where their bounds do not overlap, because a clock went faster meanwhile, the offset lies between the two that
        exclude each other.
        """
        low, high = max(self._low[first:]), min(self._high[first:])
        low, high = min(low, high), max(low, high)
        return ClockOffset((low + high) // 2, -(-(high - low) // 2), self._ended_ns[-1], self.count - first)
