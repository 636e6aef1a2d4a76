"""Which of several URLs a session uses."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

_GOLDEN = 0.6180339887498949


class UrlStrategy:
    """Chooses once a session; all its turns stay with that URL, and so do history and cache.

    uses_load: whether *in_flight* must be counted for it.  What it then knows is this shard's own load.
    """

    uses_load: ClassVar[bool] = False

    def __init__(self, weights: Sequence[float]) -> None:
        """*weights*: one for each URL, > 0, in the order given."""
        self.weights = tuple(weights)

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        """The index of the URL for session number *session*.

        *in_flight*: requests under way at each URL; all 0 unless *uses_load*.
        """
        raise NotImplementedError(f"{type(self).__name__} must define choose()")


class RoundRobin(UrlStrategy):
    """In turn, by the session's number."""

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        return session % len(self.weights)


class Weighted(UrlStrategy):
    """In proportion to the weights, spread evenly.

    The multiples of the golden ratio fall into [0, 1) as evenly as a sequence without memory can.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__(weights)
        total = sum(weights)
        self._bounds = [share / total for share in accumulate(weights)][:-1]

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        return bisect(self._bounds, (session * _GOLDEN) % 1.0)


class LeastInFlight(UrlStrategy):
    """Where the fewest requests are under way, for its weight; in turn among equals."""

    uses_load = True

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        count = len(self.weights)
        return min(range(count), key=lambda i: (in_flight[i] / self.weights[i], (i - session) % count))
