"""The contract of URL strategies: valid indices, and shares according to the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import pytest
from aiperf.sdk.url_strategy import UrlStrategy

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row, row_of

_SESSIONS = 6000
"""Sessions of which shares are counted: these are within 0.02 by then."""
_WEIGHTS = (3.0, 1.0, 2.0)


class UrlStrategyContract:
    """Subclass with the class::

        class TestMineKeepsTheContract(UrlStrategyContract):
            strategy = Mine

    even: URLs of the same weight get the same share.
    """

    strategy: ClassVar[type[UrlStrategy]]
    even: ClassVar[bool] = True

    def _chosen(self, weights: Sequence[float], sessions: range = range(_SESSIONS)) -> list[int]:
        """The URLs of successive sessions that never end."""
        strategy, in_flight = type(self).strategy(weights), [0] * len(weights)
        chosen = []
        for session in sessions:
            chosen.append(strategy.choose(session, tuple(in_flight)))
            if strategy.uses_load:
                in_flight[chosen[-1]] += 1
        return chosen

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("url_strategies", self.strategy)
        assert row.capabilities.get("uses_load", False) is self.strategy.uses_load, (
            unlike(self.strategy.uses_load, row.capabilities.get("uses_load", False), "say it in the manifest row")
        )

    @pytest.mark.parametrize("weights", [(1.0,), (1.0, 1.0), _WEIGHTS, (0.001, 1000.0)])
    def test_it_names_a_url_that_is_there(self, weights: Sequence[float]) -> None:
        assert set(self._chosen(weights, range(500))) <= set(range(len(weights))), (
            unlike(set(self._chosen(weights, range(500))), f"indices below {len(weights)}", "choose an index of a URL")
        )

    def test_equals_get_equal_shares(self) -> None:
        if not self.even:
            pytest.skip("it makes no such promise")
        counted = Counter(self._chosen((1.0, 1.0, 1.0, 1.0)))
        assert all(abs(counted[i] / _SESSIONS - 0.25) < 0.02 for i in range(4)), (
            f"sessions by URL are {shown(counted)}: equal weights have equal shares"
        )

    def test_weights_are_honoured_in_the_mean(self) -> None:
        if not row_of("url_strategies", self.strategy).capabilities.get("weights"):
            pytest.skip("it takes no weights")
        counted = Counter(self._chosen(_WEIGHTS))
        wanted = [weight / sum(_WEIGHTS) for weight in _WEIGHTS]
        assert all(abs(counted[i] / _SESSIONS - share) < 0.02 for i, share in enumerate(wanted)), (
            f"sessions by URL are {shown(counted)}: shares follow the weights"
        )

    def test_a_session_asked_again_stays_where_it_was(self) -> None:
        first, second = type(self).strategy(_WEIGHTS), type(self).strategy(_WEIGHTS)
        load = (4, 1, 2) if first.uses_load else (0, 0, 0)
        for session in (0, 1, 5, 10**9):
            assert first.choose(session, load) == first.choose(session, load) == second.choose(session, load), (
                "a session gets another URL the second time: choose from session and load alone"
            )

    def test_a_shard_needs_to_know_of_no_other(self) -> None:
        if self.strategy.uses_load:
            pytest.skip("it goes by its own shard's load")
        assert self._chosen(_WEIGHTS, range(1, 90, 3)) == self._chosen(_WEIGHTS, range(90))[1::3], (
            "a shard that asks for its sessions alone gets other URLs: choose from the session alone"
        )
