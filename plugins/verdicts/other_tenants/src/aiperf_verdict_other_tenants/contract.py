"""The contract of the category with material for this verdict."""

from __future__ import annotations

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
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
    def column(name: str) -> Floats:
        return np.full(24, 10.0 if name == "output_tokens" else 0.0)

    source = SourceSummary(server, "acme", "1", 0.3, 9, 0, 0, series)
    return sample_evidence(telemetry=(source,), read_column=column)


class OtherTenantsContract(VerdictContract):
    """A server with more requests than the run sent, one with as many, and two behind a gateway."""

    verdict = OtherTenants
    cases = (
        (answered(24), ()), (answered(25), ()), (answered(26), ("other_tenants",)), (answered(14, 10), ()),
        (answered(20, 10), ("other_tenants",)), (sample_evidence(), ()),
    )  # fmt: skip
