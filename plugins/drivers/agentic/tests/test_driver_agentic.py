"""The driver of lanes and its schedule keep the contracts of their categories."""

from __future__ import annotations

import random

import pytest
from aiperf_driver_agentic.driver import AgenticDriver
from aiperf_driver_agentic.schedule import AgenticReplay
from aiperf_testing.drivers import DriverContract
from aiperf_testing.random_trees import HandClock, TreeJudge, play_random_trees, random_tree
from aiperf_testing.schedules import ScheduleContract


class TestAgenticKeepsTheContract(DriverContract):
    driver = AgenticDriver


class TestAgenticReplayKeepsTheContract(ScheduleContract):
    schedule = AgenticReplay


@pytest.mark.parametrize("failing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_random_trees_keep_to_their_lanes_and_order(monkeypatch: pytest.MonkeyPatch, seed: int, failing: float) -> None:
    clock, draw = HandClock(), random.Random(seed)
    clock.rules(monkeypatch, "aiperf_driver_agentic")
    judge = TreeJudge(draw, clock, [random_tree(draw) for _ in range(5)], failing, waits=True)
    play_random_trees(AgenticDriver, judge, 6, session_count=6)
    assert len(judge.sent) == 6
    assert failing or not any(map(judge.left_out, judge.sent))
    assert len(judge.numbers) == len(set(judge.numbers))
    assert judge.most_live <= 2
