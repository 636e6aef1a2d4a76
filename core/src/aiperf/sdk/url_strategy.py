"""The contract of URL strategies, and the built-in ones."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

_GOLDEN = 0.6180339887498949


class UrlStrategy:
    """Chooses a URL once per session; all turns, history and cache of the session stay with that URL.

    uses_load: the strategy reads *in_flight*, which counts the load of its own shard only.
    """

    uses_load: ClassVar[bool] = False

    def __init__(self, weights: Sequence[float]) -> None:
        """*weights*: one for each URL, > 0, in the order given."""
        self.weights = tuple(weights)

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        """The index of the URL for session number *session*.

        *in_flight*: requests in flight by URL; all 0 unless *uses_load*.
        """
        raise NotImplementedError(f"{type(self).__name__} must define choose()")


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


__all__ = ["LeastInFlight", "RoundRobin", "UrlStrategy", "Weighted"]
