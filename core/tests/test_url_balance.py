"""Which URL a session gets: by the plan's strategy, and in turn where there is none or it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.url_strategy import UrlStrategy
from aiperf.worker.url_balance import UrlBalance
from aiperf_testing.plans import sample_plan, sample_ref


class Last(UrlStrategy):
    """The last URL; none, or an error, where sessions are above 1."""

    def choose(self, session: int, in_flight: Any) -> int:
        return len(self.weights) - 1 if session < 2 else self.beyond()

    def beyond(self) -> int:
        return len(self.weights)


class Failing(Last):
    def beyond(self) -> int:
        raise ValueError("no choice")


def balance(folder: Path, strategy: type[UrlStrategy] | None) -> tuple[UrlBalance, list[str]]:
    said: list[str] = []
    ref = None if strategy is None else sample_ref("url_strategies", f"{__name__}:{strategy.__name__}")
    plan = sample_plan(folder, urls=("http://a", "http://b", "http://c"), url_strategy=ref)
    return UrlBalance(plan, said.append), said


def test_without_a_strategy_sessions_take_the_urls_in_turn(tmp_path: Path) -> None:
    urls, said = balance(tmp_path, None)
    assert ([urls.choose(session) for session in (0, 1, 2, 3, 7)], said) == ([0, 1, 2, 0, 1], [])


@pytest.mark.parametrize(("strategy", "why"), [
    (Last, "the URL strategy last failed, and sessions take turns: IndexError: it chose URL 3 of 3"),
    (Failing, "the URL strategy failing failed, and sessions take turns: ValueError: no choice"),
])  # fmt: skip
def test_a_strategy_that_fails_is_told_once_and_sessions_take_turns(
    tmp_path: Path, strategy: type[UrlStrategy], why: str
) -> None:
    urls, said = balance(tmp_path, strategy)
    assert [urls.choose(session) for session in (0, 1, 5, 0, 7)] == [2, 2, 2, 0, 1]
    assert said == [why]
