"""Shares of prompt tokens from a prefix cache: those that the run put there, and the rest."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.columns import Floats
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.verdict import Evidence, Finding
from aiperf.testing import sample_evidence
from aiperf_verdict_warm_cache import WarmCache
from aiperf_verdict_warm_cache.contract import REQUESTS, WarmCacheContract, answers
from aiperf_verdict_warm_cache.prompts import SentPrompts, _common, _shares, own_prompts
from msgspec.structs import replace


class TestItKeepsTheContract(WarmCacheContract):
    pass


def judged(evidence: Evidence) -> dict[str, Finding]:
    return {finding.kind: finding for finding in WarmCache(None).judge(evidence)}


def on_server(evidence: Evidence, hits: float, asked: float = 100.0 * REQUESTS, requests: float = REQUESTS) -> Evidence:
    """The run on a server that counts so many hits."""
    totals = {"prefix_cache_hits_total": hits, "prefix_cache_queries_total": asked, "request_success_total": requests}
    series = tuple(
        SeriesSummary("server_metrics", 0, f"vllm:{name}", "counter", "", {}, "", {"total": total})
        for name, total in totals.items()
    )
    source = SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, series)
    return replace(evidence, summary=replace(evidence.summary, telemetry=(source,)))


def test_the_share_that_the_run_did_not_fill_is_told() -> None:
    finding = judged(answers(50, shared=20))["warm_cache"]
    assert finding.sentence.startswith("the server had 25 % of the prompt tokens in its prefix cache before this run sent them")
    assert "at most 25 % more were this run's own prefixes" in finding.sentence
    assert "not known: prefix hits of the server" in finding.sentence and finding.confidence == 0.8


def test_without_bodies_it_is_less_sure() -> None:
    finding = judged(answers(20, bodies=False))["warm_cache"]
    assert finding.confidence == 0.5 and "which prefixes the prompts share" in finding.sentence


def test_prompts_that_the_run_sent_twice_are_told_apart() -> None:
    found = judged(answers(60, entries=6, shared=0))
    finding = found["repeated_prompts"]
    assert "this run sent 18 of its 24 prompts before" in finding.sentence and "--num-dataset-entries" in finding.sentence
    assert finding.numbers["repeated_tokens"] == 60 * 18


@pytest.mark.parametrize(
    ("marker", "told"),
    [("first_turn_prefix", False), ("system_prefix", False), ("first_turn_suffix", True), ("warmup_isolation_system", True)],
)
def test_prompts_behind_a_marker_of_their_session_are_not_sent_twice(marker: str, told: bool) -> None:
    evidence = answers(60, entries=6, shared=0)
    found = judged(replace(evidence, plan=evidence.plan.replacing(cache_bust=CacheBust(marker))))
    assert ("repeated_prompts" in found) is told


def test_turns_before_are_the_runs_own() -> None:
    assert judged(answers(90, turns=4, shared=90)) == {}
    assert "warm_cache" in judged(answers(90, turns=4))  # the first turns, which share nothing


@pytest.mark.parametrize(("hits", "there"), [(2.0, False), (20.0, True)])
def test_hits_of_the_server_count_where_it_is_alone(hits: float, *, there: bool) -> None:
    found = judged(on_server(answers(0), hits * REQUESTS))
    assert ("warm_cache" in found) is there
    if there:
        assert "as it counts" in found["warm_cache"].sentence


def test_the_usage_counts_where_others_use_the_server() -> None:
    shared = on_server(answers(0), 50.0 * REQUESTS, 200.0 * REQUESTS, 2 * REQUESTS)
    assert judged(shared) == {}, "their hits are not the run's"


def test_a_study_is_named_as_the_cause() -> None:
    evidence = answers(50)
    evidence = replace(evidence, plan=evidence.plan.replacing(study_id="abc"))
    assert "an earlier run of this study, with the same prompts, or another client" in judged(evidence)["warm_cache"].sentence


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [(b"", b"abc", 0), (b"abc", b"abd", 2), (b"abc", b"abcdef", 3), (b"xbc", b"abc", 0), (b"a" * 999 + b"b", b"a" * 1000, 999)],
)
def test_common_beginnings(one: bytes, other: bytes, length: int) -> None:
    assert _common(one, other) == length == _common(other, one)


def test_a_body_is_compared_with_the_most_similar_one() -> None:
    assert _shares([(3, b"aabb"), (1, b"aacc"), (2, b"zzzz"), (4, b"aabbcccc")]) == {1: 0.5, 2: 0.0, 3: 1.0, 4: 0.5}


def test_many_requests_take_three_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    count, size = 400_000, 1000
    monkeypatch.setattr("aiperf_verdict_warm_cache.prompts._BLOCK", size)

    def whole(name: str) -> Floats:
        raise AssertionError(f"the whole column {name}")

    def columns(names: Sequence[str]) -> Iterator[tuple[Floats, ...]]:
        known = {"usage_prompt_tokens": 100.0, "usage_cached_tokens": 60.0, "input_tokens": 90.0}
        for begin in range(0, count, size):
            places = np.arange(begin, begin + size, dtype=np.float64)
            own = {"entry": places % 10, "started_ns": places}
            yield tuple(own.get(name, np.full(size, known.get(name, 0.0))) for name in names)

    tracemalloc.start()
    try:
        found = own_prompts(SentPrompts(sample_evidence(read_column=whole, read_columns=columns)))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and (found.count, found.repeated, found.hits) == (count, count - 10, 60.0 * count)
    assert (found.own, found.beyond) == (100.0 * (count - 10) + 10 * 10, 10 * 50.0), "of ten prompts what a template adds"
    assert most < 3 * 8 * count
