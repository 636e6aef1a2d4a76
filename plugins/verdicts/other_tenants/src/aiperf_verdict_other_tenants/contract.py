"""The contract of the category with material for this verdict."""

from __future__ import annotations

from aiperf import Evidence
from aiperf.sdk.summary import SeriesSummary, SourceSummary
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_other_tenants import OtherTenants


def answered(*counts: float) -> Evidence:
    """A run of 24 requests on servers that answered so many each."""
    name, server = "vllm:request_success_total", "server_metrics"
    series = tuple(
        SeriesSummary(server, 0, name, "counter", "", {}, "", {"total": count}, target=f"http://w{number}/metrics")
        for number, count in enumerate(counts)
    )
    return sample_evidence(telemetry=(SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, series),))


class OtherTenantsContract(VerdictContract):
    """A server with more requests than the run sent, one with as many, and two behind a gateway."""

    verdict = OtherTenants
    cases = (
        (answered(24), ()), (answered(25), ()), (answered(26), ("other_tenants",)), (answered(14, 10), ()),
        (answered(20, 10), ("other_tenants",)), (sample_evidence(), ()),
    )  # fmt: skip
