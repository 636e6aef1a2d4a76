"""Polls in rounds: none is lost, none comes much too soon or too late, and many share a timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiperf.worker import rounds
from aiperf.worker.rounds import Rounds


class Clock:
    """A loop whose timers ring when the test says so; ``now_ns`` is the time."""

    def __init__(self) -> None:
        self.now_ns = 7_000_000_123
        self.timers: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []

    def call_later(self, wait_s: float, call: Callable[..., None], *given: Any) -> None:
        self.timers.append((self.now_ns + round(wait_s * 1e9), call, given))

    def ring(self) -> None:
        for at_ns, call, given in sorted(self.timers, key=lambda timer: timer[0]):
            self.now_ns = at_ns
            call(*given)


@pytest.mark.parametrize(("slack_s", "most_timers"), [(0.001, 52), (0.003, 27), (1.0, 27)])
def test_what_is_due_at_nearly_one_time_comes_in_one_round(
    slack_s: float, most_timers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, came = Clock(), list[tuple[int, int]]()
    monkeypatch.setattr(rounds, "monotonic_ns", lambda: clock.now_ns)
    waiting = Rounds[int](clock, lambda due_ns: came.append((due_ns, clock.now_ns)))  # type: ignore[arg-type]
    for number in range(1000):
        wait_ns = 100_000 * number
        waiting.add(clock.now_ns + wait_ns, wait_ns / 1e9, slack_s)
    clock.ring()
    assert len(clock.timers) <= most_timers
    assert len(came) == 1000
    assert max(abs(at_ns - due_ns) for due_ns, at_ns in came) <= min(slack_s * 1e9, 2e6) + 1000
