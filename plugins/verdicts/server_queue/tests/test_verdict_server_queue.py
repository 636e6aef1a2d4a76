"""Waits in a server's queue, by histogram and by Little's law."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf.sdk.summary import Result, SeriesSummary, SourceSummary
from aiperf.sdk.verdict import Evidence, Finding
from aiperf_testing.verdicts import sample_evidence
from aiperf_verdict_server_queue import ServerQueue
from aiperf_verdict_server_queue.contract import ServerQueueContract, page


class TestItKeepsTheContract(ServerQueueContract):
    pass


def judged(evidence: Evidence) -> list[Finding]:
    return list(ServerQueue(None).judge(evidence))


def result(tag: str, mean_ms: float) -> Result:
    return Result(tag, tag, "ms", {"avg": mean_ms, "count": 24})


def dynamo(waiting: float, *results: Result, std: float = 0.0, count: float = 100) -> Evidence:
    """A run of 24 requests in 12 s on a server that only tells how many waited."""
    stats = {"avg": waiting, "min": 0.0, "max": 3.0, "std": std, "count": count}
    series = (
        SeriesSummary("server_metrics", 0, "dynamo_frontend_queued_requests", "gauge", "", {}, "", stats),
        SeriesSummary("server_metrics", 0, "dynamo_frontend_requests_total", "counter", "", {}, "", {"total": 24.0}),
    )
    source = SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, series)
    return sample_evidence(*results, telemetry=(source,), observation_window_s=12.0)


def test_share_load_and_times_are_in_the_sentence() -> None:
    (finding,) = judged(page(0.5))
    assert finding.sentence.startswith(
        "requests spent 50 % of their time to first token in the queue of vllm: 500 of 1,000 ms on average, while 8 were"
        " computed (at most 9) and 4 waited (at most 9)"
    )
    assert finding.numbers["share_pct"] == 50 and finding.confidence == 1.0 and finding.level == "advice"


@pytest.mark.parametrize(("wait_s", "there"), [(0.249, False), (0.251, True)])
def test_a_quarter_is_spoken_of(wait_s: float, *, there: bool) -> None:
    assert bool(judged(page(wait_s))) is there


@pytest.mark.parametrize(("between_s", "there"), [(0.32, True), (0.34, False)])
def test_a_wait_for_the_step_under_way_is_no_queue(between_s: float, *, there: bool) -> None:
    assert bool(judged(page(0.5, between_s=between_s))) is there


@pytest.mark.parametrize(("waiting", "std", "there"), [(1.0, 0.0, True), (1.0, 2.0, False), (0.1, 0.0, False)])
def test_waiting_requests_give_the_mean_wait(waiting: float, std: float, *, there: bool) -> None:
    found = judged(dynamo(waiting, result("time_to_first_token", 1000.0), result("inter_token_latency", 10.0), std=std))
    assert bool(found) is there
    if found:
        assert found[0].numbers["queue_mean_ms"] == 500.0 and found[0].confidence == 0.8
        assert "not known: a histogram of waits" in found[0].sentence


def test_answers_without_a_stream_are_judged_by_their_latency() -> None:
    (finding,) = judged(dynamo(2.0, result("request_latency", 2000.0)))
    assert "50 % of their latency" in finding.sentence and finding.scope == "request latency"


def test_a_server_without_levels_or_waits_is_not_judged() -> None:
    series = SeriesSummary("server_metrics", 0, "vllm:request_success_total", "counter", "", {}, "", {"total": 24.0})
    source: Any = SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, (series,))
    assert judged(sample_evidence(telemetry=(source,))) == []
