"""Random trees without a wire: no turn leaves before what it waits for, none is forgotten, and trees keep to their slots."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aiperf.sdk.driver import Driver, Session
from aiperf.sdk.trees import Stream, faults
from aiperf_driver_standard.tree_drivers import BurstTrees, PacedTrees, SessionTrees
from aiperf_testing.random_trees import HandClock, TreeJudge, play_random_trees, random_tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KINDS = [BurstTrees, PacedTrees, SessionTrees]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    clock = HandClock()
    clock.rules(monkeypatch, "aiperf_driver_standard")
    return clock


TREES = st.randoms(use_true_random=False).map(random_tree)


def run(
    kind: type[Driver[Any]], clock: HandClock, seed: int, count: int, *, failing: float = 0.0, fails_fast: bool = False,
    entries: list[tuple[Stream, ...]] | None = None, **limits: Any,
) -> TreeJudge:  # fmt: skip
    clock.timers.clear()
    draw = random.Random(seed)
    judge = TreeJudge(draw, clock, entries or [random_tree(draw) for _ in range(5)], failing, fails_fast=fails_fast, waits=True)
    assert not [fault for one in judge.entries for fault in faults(one, sum(stream.turns for stream in one))]
    return play_random_trees(kind, judge, count, starts=kind is SessionTrees, **limits)


@settings(max_examples=70, suppress_health_check=list(HealthCheck))
@given(st.lists(TREES, min_size=3, max_size=3), st.integers(0, 1 << 32), st.sampled_from(KINDS))
def test_random_trees_are_sent_whole_and_in_order(
    clock: HandClock, entries: list[tuple[Stream, ...]], seed: int, kind: type[Driver[Any]]
) -> None:
    judge = run(kind, clock, seed, 6, session_count=6, entries=entries)
    assert len(judge.sent) == 6
    assert not any(map(judge.left_out, judge.sent))
    assert len(judge.numbers) == len(set(judge.numbers))
    assert judge.most_live <= 2


@pytest.mark.parametrize("kind", [BurstTrees, SessionTrees])
@pytest.mark.parametrize("seed", range(10))
def test_a_failed_child_releases_its_join(clock: HandClock, kind: type[Driver[Any]], seed: int) -> None:
    judge = run(kind, clock, seed, 6, session_count=6, failing=0.3)
    roots = [judge.entries[number % 5][0] for number in judge.sent]
    assert all(set(range(root.turns)) <= set(judge.sent[number]) for number, root in enumerate(roots))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_a_failed_child_ends_its_family(
    clock: HandClock, kind: type[Driver[Any]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIPERF_DAG_FAIL_FAST", "1")
    run(kind, clock, seed, 6, session_count=6, failing=0.3, fails_fast=True)
    judge = run(kind, clock, seed, 6, session_count=6, failing=1.0, fails_fast=True)
    for number, sent in judge.sent.items():
        streams = judge.entries[number % 5]
        children = [stream for stream in streams[1:] if stream.turns > 1]
        assert all(stream.first + 1 not in sent for stream in children), "a failed child went on"
        for stream in streams:
            for branch in stream.branches:  # a child that starts others may have been ended by one of these
                alone = [streams[child] for child in branch.children if not streams[child].branches]
                failed = any(child.first in judge.ended[number] for child in alone)
                went_on = branch.joins is not None and stream.first + branch.joins in sent
                assert not (failed and went_on), "a parent went on behind a failed child"


class StopsEarly(TreeJudge):
    """Ends the phase behind so many answers."""

    left = 25

    def _answer(self, session: Session) -> None:
        super()._answer(session)
        self.left -= 1
        if not self.left:
            self.driver.stop()


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(TREES, min_size=3, max_size=3), st.integers(0, 1 << 32), st.sampled_from([BurstTrees, PacedTrees]),
    st.sampled_from([StopsEarly, TreeJudge]), st.sampled_from([0.0, 0.3]), st.sampled_from(["0", "1"]),
)  # fmt: skip
def test_what_a_tree_has_not_sent_is_told_with_its_fate(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch, entries: list[tuple[Stream, ...]], seed: int, kind: type[Driver[Any]],
    judges: type[TreeJudge], failing: float, fast: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("AIPERF_DAG_FAIL_FAST", fast)
    clock.timers.clear()
    judge = judges(random.Random(seed), clock, entries, failing, fails_fast=fast == "1")
    play_random_trees(kind, judge, 12, request_count=40)
    ends = {each["session"]: each["fates"] for each in judge.told if each["event"] == "tree_end"}
    assert all(ends.values()) and ends.keys() <= judge.sent.keys()
    for number, sent in judge.sent.items():
        streams = entries[number % 3]
        unsent = [place for stream, first, _ in ends.get(number, ()) for place in range(first, streams[stream].end)]
        assert sorted(sent + unsent) == list(range(streams[-1].end))
    if not failing:
        assert {why for rows in ends.values() for _, _, why in rows} <= {"truncated"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_behind_a_failed_child_is_released(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch, kind: type[Driver[Any]]
) -> None:
    monkeypatch.setenv("AIPERF_DAG_FAIL_FAST", "1")
    told = run(kind, clock, 1, 60, failing=1.0, fails_fast=True, request_count=60).told
    ends = [each["fates"] for each in told if each["event"] == "tree_end"]
    assert {why for fates in ends[:-2] for _, _, why in fates} == {"released"}, "the last two were under way at the end"


@pytest.mark.parametrize("seed", range(3))
def test_a_driver_of_planned_trees_tells_nothing(clock: HandClock, seed: int) -> None:
    assert run(BurstTrees, clock, seed, 6, session_count=6).told == []


@pytest.mark.parametrize("kind", [BurstTrees, PacedTrees])
@pytest.mark.parametrize("seed", range(10))
def test_a_request_count_counts_every_request(clock: HandClock, kind: type[Driver[Any]], seed: int) -> None:
    judge = run(kind, clock, seed, 50, request_count=40)
    assert sum(map(len, judge.sent.values())) == 40
