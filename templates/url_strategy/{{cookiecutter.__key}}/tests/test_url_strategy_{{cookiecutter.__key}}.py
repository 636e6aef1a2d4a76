"""The {{ cookiecutter.name }} choice of URLs: blocks, in turn."""

from __future__ import annotations

from aiperf.testing import UrlStrategyContract

from {{ cookiecutter.__module }} import BLOCK, {{ cookiecutter.__class }}


class TestItKeepsTheContract(UrlStrategyContract):
    strategy = {{ cookiecutter.__class }}


def test_a_block_of_sessions_shares_a_url() -> None:
    strategy = {{ cookiecutter.__class }}((1.0, 1.0))
    assert [strategy.choose(session, (0, 0)) for session in range(2 * BLOCK)] == [0] * BLOCK + [1] * BLOCK
