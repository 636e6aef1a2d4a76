"""The contract of tables with material for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from aiperf.sdk.columns import Floats
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.sdk.verdict import Evidence
from aiperf.testing import TablesContract, sample_evidence

from aiperf_table_reconciliation import Reconciliation

TARGET = "http://127.0.0.1:8000/metrics"


def counter(name: str, total: float, target: str = TARGET, **labels: str) -> SeriesSummary:
    return SeriesSummary("server_metrics", 0, name, "counter", "", labels, "", {"total": total}, target=target)


def gauge(name: str, avg: float, target: str = TARGET, **labels: str) -> SeriesSummary:
    stats = {"avg": avg, "min": avg / 2, "max": 2 * avg, "p50": avg, "p99": 1.5 * avg}
    return SeriesSummary("server_metrics", 0, name, "gauge", "", labels, "", stats, target=target)


def histogram(name: str, buckets: dict[str, float], total: float, target: str = TARGET, **labels: str) -> SeriesSummary:
    """*buckets*: cumulative, by upper bound."""
    stats = {"count": max(buckets.values()), "sum": total}
    return SeriesSummary("server_metrics", 0, name, "histogram", "", labels, "", stats, buckets, target=target)


def vllm(requests: float = 24, prompt: float = 2400, generated: float = 240) -> list[SeriesSummary]:
    """A page of vLLM after a run of 24 requests."""
    return [
        histogram("vllm:time_to_first_token_seconds", {"0.01": 6, "0.02": 24, "+Inf": 24}, 0.3),
        counter("vllm:request_success_total", requests - 4, finished_reason="length"),
        counter("vllm:request_success_total", 4, finished_reason="stop"),
        counter("vllm:prompt_tokens_total", prompt),
        counter("vllm:generation_tokens_total", generated),
        gauge("vllm:num_requests_running", 3.0),
        gauge("vllm:kv_cache_usage_perc", 0.25),
        counter("vllm:prefix_cache_hits_total", 600),
        counter("vllm:prefix_cache_queries_total", 2400),
    ]


def evidence(series: Iterable[SeriesSummary], requests: int = 24, **columns: Floats) -> Evidence:
    """A run of *requests* good requests with 100 tokens in and 10 out; *columns* replace those of the requests."""
    known = {
        "usage_prompt_tokens": np.full(requests, 100.0), "usage_completion_tokens": np.full(requests, 10.0),
        "input_tokens": np.full(requests, 92.0), "output_tokens": np.full(requests, 10.0),
        "reasoning_tokens": np.full(requests, np.nan), "usage_cached_tokens": np.full(requests, 25.0),
        **columns,
    }  # fmt: skip

    def read(name: str) -> Floats:
        return known.get(name, np.zeros(requests))

    source = SourceSummary("server_metrics", "aiperf-metric-server-metrics", "0.1.0", 0.333, 10, 0, 0, tuple(series))
    return sample_evidence(telemetry=(source,), read_column=read)


class ReconciliationContract(TablesContract):
    tables = Reconciliation
    cases = (
        (evidence(vllm()), ("server_load", "reconciliation")),
        (evidence([gauge("node_load1", 2.0)]), ("server_families",)),
        (evidence(()), ()),
    )
