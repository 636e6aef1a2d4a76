"""The contract of URL strategies: which of several URLs a session uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


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


__all__ = ["UrlStrategy"]
