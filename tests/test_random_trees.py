"""Ten thousand random trees without a wire, judged on the order of their sends and ends."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aiperf.sdk.driver import Driver
from aiperf.sdk.trees import Stream
from aiperf_driver_agentic.driver import AgenticDriver
from aiperf_driver_standard.tree_drivers import BurstTrees, PacedTrees, SessionTrees
from aiperf_testing.random_trees import HandClock, TreeJudge, play_random_trees, random_tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TREES = 10_000
A_RUN = 4
"""Trees of an example."""


@pytest.mark.long
@settings(max_examples=TREES // A_RUN, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.randoms(use_true_random=False).map(random_tree), min_size=A_RUN, max_size=A_RUN), st.integers(0, 1 << 32),
    st.sampled_from([BurstTrees, PacedTrees, SessionTrees, AgenticDriver]), st.integers(1, 3), st.sampled_from([0.0, 0.3]),
)  # fmt: skip
def test_any_tree_is_sent_in_order_and_none_is_forgotten(
    entries: list[tuple[Stream, ...]], seed: int, kind: type[Driver[Any]], slots: int, failing: float
) -> None:
    clock = HandClock()
    with pytest.MonkeyPatch.context() as patch:
        clock.rules(patch, kind.__module__.partition(".")[0])
        judge = TreeJudge(random.Random(seed), clock, entries, failing, waits=True)
        play_random_trees(kind, judge, A_RUN, slots=slots, session_count=A_RUN, starts=kind is SessionTrees)
    assert len(judge.sent) == A_RUN
    assert failing or not any(map(judge.left_out, judge.sent))
    assert len(judge.numbers) == len(set(judge.numbers))
    assert judge.most_live <= slots, "more trees than slots"
