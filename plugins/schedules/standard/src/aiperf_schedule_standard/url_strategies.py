"""Which of several URLs a session uses."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from aiperf import UrlStrategy

_GOLDEN = 0.6180339887498949
"""The golden ratio's fraction: its multiples fill the circle evenly."""


class RoundRobin(UrlStrategy):
    """In turn, by the session's number."""

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        return session % len(self.weights)


class Weighted(UrlStrategy):
    """In proportion to the weights, spread evenly.

    Multiples of the golden ratio cover [0, 1) evenly without memory of earlier sessions.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__(weights)
        total = sum(weights)
        self._bounds = [share / total for share in accumulate(weights)][:-1]

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        return bisect(self._bounds, (session * _GOLDEN) % 1.0)


class LeastInFlight(UrlStrategy):
    """The URL with the fewest requests in flight relative to its weight; in turn among equals."""

    uses_load = True

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        count = len(self.weights)
        return min(range(count), key=lambda i: (in_flight[i] / self.weights[i], (i - session) % count))
