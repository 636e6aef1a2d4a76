"""Advice on numbers that were measured well and mislead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aiperf.report.trust import advice
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.summary import STATISTICS, Result
from aiperf.statistics.phase_counts import PhaseCounts
from aiperf.testing.batches import sample_batch
from aiperf.testing.journals import plan_for

PHASE = PhasePlan("profiling", "profiling", 0, "burst", concurrency=2, entries=50)


def result(tag: str, value: float, count: int | None = None) -> dict[str, Result]:
    stats = {"avg": value} if count is None else dict.fromkeys(STATISTICS, value) | {"count": count}
    return {tag: Result(tag, tag, "ms", stats)}


@pytest.fixture
def plan(tmp_path: Any) -> Plan:
    return plan_for(tmp_path, phases=(PHASE,))


def said(plan: Plan, census: PhaseCounts, results: dict[str, Result] | None = None, *, single: bool = True) -> str:
    return "\n".join(advice(plan, PHASE, census, results or {}, single=single))


def test_an_ordinary_run_needs_no_advice(plan: Plan) -> None:
    fine = PhaseCounts(opening=[(0.0, 12e6), (1.0, 15e6)], prompt_tokens=1000, cached_tokens=50)
    assert said(plan, fine, result("time_to_first_token", 10.0, 100) | result("osl_mismatch_count", 0.0)) == ""


@pytest.mark.parametrize(
    ("opening_ms", "count", "cold"),
    [((900, 950), 100, True), ((900, 11), 100, False), ((45, 45), 100, False), ((900, 950), 19, False), ((), 100, False)],
)
def test_a_cold_server_is_one_whose_whole_first_wave_was_slow(plan: Plan, opening_ms: Any, count: int, cold: bool) -> None:
    census = PhaseCounts(opening=[(float(i), ms * 1e6) for i, ms in enumerate(opening_ms)])
    assert ("the server was cold" in said(plan, census, result("time_to_first_token", 10.0, count))) is cold


def test_after_a_warmup_the_first_requests_are_not_judged(tmp_path: Any) -> None:
    warmed = plan_for(tmp_path, phases=(PhasePlan("warmup", "warmup", 0, "burst"), PHASE))
    census = PhaseCounts(opening=[(0.0, 9e9), (1.0, 9e9)])
    assert said(warmed, census, result("time_to_first_token", 10.0, 100)) == ""


def test_without_a_stream_the_whole_latency_is_compared(plan: Plan) -> None:
    census = PhaseCounts(opening=[(0.0, 9e9), (1.0, 9e9)])
    assert "took 9,000 ms and more, the usual one 10 ms" in said(plan, census, result("request_latency", 10.0, 100))


def test_reasoning_that_is_counted_and_not_shown_is_told(plan: Plan) -> None:
    assert "reasoning tokens with 7 answers" in said(plan, PhaseCounts(hidden_reasoning=7))


def test_a_warm_prefix_cache_is_suspected_unless_conversations_explain_it(plan: Plan) -> None:
    census = PhaseCounts({0: 120}, prompt_tokens=1000, cached_tokens=430)
    assert "took 43 % of the prompt tokens" in said(plan, census)
    assert "(120 requests used 50 entries)" in said(plan, census)
    assert said(plan, census, single=False) == ""


def test_token_counts_and_lengths_that_disagree_are_told(plan: Plan, tmp_path: Any) -> None:
    results = result("usage_discrepancy_count", 5.0) | result("osl_mismatch_count", 1200.0)
    text = said(plan, PhaseCounts(), results)
    assert "with 5 answers the server's token counts" in text
    assert "1,200 answers don't have the length that was asked for; where" in text
    kept = plan_for(tmp_path, phases=(PHASE,), extra={"ignore_eos": True})
    assert said(kept, PhaseCounts(), result("osl_mismatch_count", 3.0)) == "3 answers don't have the length that was asked for"


def test_one_answer_is_one(plan: Plan, tmp_path: Any) -> None:
    assert "with 1 answer the server's" in said(plan, PhaseCounts(), result("usage_discrepancy_count", 1.0))
    assert "reasoning tokens with 1 answer without" in said(plan, PhaseCounts(hidden_reasoning=1))
    kept = plan_for(tmp_path, phases=(PHASE,), extra={"min_tokens": 9})
    assert said(kept, PhaseCounts(), result("osl_mismatch_count", 1.0)) == "1 answer doesn't have the length that was asked for"


def test_the_census_has_the_same_facts_however_a_batch_is_cut() -> None:
    batch = sample_batch(40)
    batch.columns["first_output_ns"] = np.where(np.arange(40) % 3 == 0, batch["first_token_ns"], batch["first_token_ns"] + 5)
    whole = PhaseCounts()
    whole.add(batch)
    assert whole.hidden_reasoning > 0
    assert whole.cached_tokens > 0
    assert len(whole.opening) == 8
    assert whole.opening == sorted(whole.opening)
    parts = PhaseCounts()
    for rows in np.array_split(np.random.default_rng(3).permutation(40), 5):
        part = PhaseCounts()
        part.add(batch.take(rows))
        parts.merge(part)
    assert parts == whole
