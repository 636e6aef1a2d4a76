"""The {{ cookiecutter.name }} verdict: a 99th percentile of too few requests is little more than their maximum."""

from __future__ import annotations

from aiperf import Evidence, Finding, FindingLevel, Verdict

ENOUGH = 100
"""With fewer good requests, at most one is beyond the 99th percentile."""


class {{ cookiecutter.__class }}(Verdict[None]):
    """Says what was seen, what it means, and what to do."""

    def judge(self, evidence: Evidence) -> Finding | None:
        good = evidence.summary.valid
        if good >= ENOUGH:
            return None
        return Finding(
            "few_requests",
            FindingLevel.SUSPECT,
            f"{good:,} requests are few for a 99th percentile: send at least {ENOUGH} (--request-count {ENOUGH})",
            numbers={"requests": good, "enough": ENOUGH},
            scope="p99",
        )
