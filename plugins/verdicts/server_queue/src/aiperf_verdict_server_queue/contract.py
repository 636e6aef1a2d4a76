"""The contract of the category with material for this verdict."""

from __future__ import annotations

from aiperf import Evidence
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_server_queue import ServerQueue


def page(wait_s: float, first_s: float = 1.0, between_s: float = 0.02, count: float = 24.0) -> Evidence:
    """A run whose server tells these mean times of *count* requests."""
    times = {
        "request_queue_time_seconds": wait_s, "time_to_first_token_seconds": first_s, "inter_token_latency_seconds": between_s,
    }  # fmt: skip
    series = [
        SeriesSummary("server_metrics", 0, f"vllm:{name}", "histogram", "s", {}, "", {"count": count, "sum": count * mean_s})
        for name, mean_s in times.items()
    ]
    series += [
        SeriesSummary("server_metrics", 0, f"vllm:num_requests_{name}", "gauge", "", {}, "", {"avg": avg, "min": 0, "max": 9})
        for name, avg in (("running", 8.0), ("waiting", 4.0))
    ]
    source = SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, tuple(series))
    return sample_evidence(telemetry=(source,))


class ServerQueueContract(VerdictContract):
    """Half of the time in the queue, a tenth, and no longer than a step."""

    verdict = ServerQueue
    cases = (
        (page(0.5), ("server_queue",)), (page(0.1), ()), (page(0.5, between_s=0.4), ()), (page(0.5, count=4.0), ()),
        (sample_evidence(), ()),
    )  # fmt: skip
