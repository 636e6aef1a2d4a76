"""Which server gets a session."""

from __future__ import annotations

from collections.abc import Callable

from aiperf.registry.third_party import made
from aiperf.sdk.plan import Plan
from aiperf.sdk.url_strategy import UrlStrategy


class UrlBalance:
    """Which of several URLs each session uses, by the plan's strategy; without one, the URLs in turn.

    If the strategy fails, *warn* gets one sentence and sessions take the URLs in turn.  in_flight: requests per URL, counted by
    the owner.
    """

    def __init__(self, plan: Plan, warn: Callable[[str], None]) -> None:
        ref, count = plan.plugins.url_strategy, len(plan.target.urls)
        weights = plan.target.url_weights or (1.0,) * count
        self._name = None if ref is None else ref.name
        self._strategy: UrlStrategy | None = None if ref is None else made(ref, weights)
        self._warn = warn
        self.in_flight = [0] * count
        self._no_load = (0,) * count

    def choose(self, session: int) -> int:
        """The index of the URL for a session's number."""
        strategy = self._strategy
        if strategy is None:
            return session % len(self._no_load)
        try:
            url = strategy.choose(session, self.in_flight if strategy.uses_load else self._no_load)
            if not 0 <= url < len(self._no_load):
                raise IndexError(f"it chose URL {url} of {len(self._no_load)}")
        except Exception as error:  # noqa: BLE001  # code of a plugin, per session: cheaper than isolated()
            self._warn(f"the URL strategy {self._name} failed, and sessions take turns: {type(error).__name__}: {error}")
            self._strategy = None
            return session % len(self._no_load)
        return url
