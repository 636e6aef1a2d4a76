"""The contract of the category with material for this verdict."""

from __future__ import annotations

from aiperf import Result
from aiperf.sdk.summary import Arrivals
from aiperf.sdk.verdict import WorkerTime
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_measurement import OwnPart

_ITL = Result("inter_token_latency", "Inter Token Latency", "ms", {"avg": 10.0, "p50": 10.0, "count": 24})

_TTFT = Result("time_to_first_token", "Time to First Token", "ms", {"avg": 50.0, "p50": 50.0, "count": 24})


class OwnPartContract(VerdictContract):
    """Runs with one fault each, and one without."""

    verdict = OwnPart
    cases = (
        (sample_evidence(clock="read"), ()),
        (sample_evidence(), ("kernel_stamps",)),
        (sample_evidence(_ITL, clock="read", interval_p50_ns=1e6, interval_p99_ns=9e6), ("merged_chunks",)),
        (sample_evidence(_TTFT, clock="read", first_interval_p50_ns=1e6, first_interval_p99_ns=9e6), ("merged_chunks",)),
        (sample_evidence(clock="read", client_not_ready=3), ("client_not_ready",)),
        (sample_evidence(clock="read", workers=(WorkerTime(cpu_pct=95.0),)), ("worker_cpu",)),
        (sample_evidence(clock="read", workers=(WorkerTime(throttled_pct=5.0),)), ("cpu_limit",)),
        (sample_evidence(clock="read", arrivals=Arrivals(24, 20, completed=20, never_sent=4)), ("never_sent",)),
    )
