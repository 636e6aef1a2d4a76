"""The driver of lanes and its schedule keep the contracts of their categories."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from aiperf import ConfigError
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.schedule import ScheduleContext
from aiperf_driver_agentic.driver import AgenticDriver
from aiperf_driver_agentic.schedule import AgenticReplay
from aiperf_testing.drivers import DriverContract
from aiperf_testing.plans import sample_plan, sample_ref
from aiperf_testing.random_trees import HandClock, TreeJudge, play_random_trees, random_tree
from aiperf_testing.schedules import CONTEXT, ScheduleContract


class TestAgenticKeepsTheContract(DriverContract):
    driver = AgenticDriver


class TestAgenticReplayKeepsTheContract(ScheduleContract):
    schedule = AgenticReplay


@pytest.mark.parametrize(
    ("lanes", "phase", "options", "bust", "refused"),
    [
        (41, {"session_count": 50}, {}, "none", True),
        (41, {"request_count": 50}, {}, "none", True),
        (40, {"session_count": 50}, {}, "none", False),
        (41, {"session_count": 40}, {}, "none", False),
        (41, {"duration_ns": 10**9}, {}, "none", False),
        (41, {"session_count": 50}, {"wraps": True}, "none", False),
        (41, {"session_count": 50}, {}, "first_turn_prefix", False),
    ],
)
def test_more_lanes_than_traces_are_refused_where_texts_would_repeat(
    tmp_path: Path, lanes: int, phase: dict[str, Any], options: dict[str, Any], bust: str, refused: bool
) -> None:
    one = PhasePlan("profiling", "profiling", 0, "agentic_replay", concurrency=lanes, **phase)
    ref = sample_ref("drivers", name="agentic")
    plan = sample_plan(tmp_path, phases=(one,), drivers={"agentic": ref}, cache_bust=CacheBust(bust))
    given = {ref.key: EncodedOptions("aiperf_driver_agentic.options:AgenticOptions", options)}
    context = ScheduleContext(7, one, data=CONTEXT.data, plan=plan.replacing(options=given))
    if not refused:
        AgenticReplay(context)
        return
    with pytest.raises(ConfigError) as caught:
        AgenticReplay(context)
    assert caught.value.message.startswith("--concurrency 41 has more lanes than there are traces (40)")
    assert "write --concurrency 40 or less" in caught.value.hints[0]


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
