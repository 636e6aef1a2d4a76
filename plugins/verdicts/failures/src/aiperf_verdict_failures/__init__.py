"""Why requests failed, and the next step, where their errors tell."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.verdict import LIKELY

from aiperf_verdict_failures.causes import cause_of

SCOPE = "failed requests"
MOST = 0.5
"""Statistics are those of a minority where more requests than this share failed."""


class Failures(Verdict[None]):
    """A sentence for each known cause of failed requests, with their number unless all requests failed of it.

    Numbers: ``requests`` that failed of it, and ``failed``, all that failed.  Where they are equal, it explains every failure.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        yield from _few_left(evidence)
        failed = sum(seen.count for seen in evidence.errors)
        counts: dict[str, int] = {}
        sentences: dict[str, str] = {}
        for seen in sorted(evidence.errors, key=lambda seen: seen.first_ns):
            kind, sentence = cause_of(seen.error, evidence.plan)
            if sentence:
                counts[kind] = counts.get(kind, 0) + seen.count
                sentences.setdefault(kind, sentence)
        for kind, sentence in sentences.items():
            everything = counts[kind] == failed and not evidence.summary.valid
            share = "" if everything else f"{counts[kind]:,} of {failed:,} failed requests: "
            numbers: dict[str, int | float] = {"requests": counts[kind], "failed": failed}
            yield Finding(kind, FindingLevel.ADVICE, share + sentence, LIKELY, numbers, SCOPE)


def _few_left(evidence: Evidence) -> Iterator[Finding]:
    """That most requests failed, and the statistics are of the others."""
    arrivals = evidence.summary.measurement.arrivals
    failed, good = arrivals.errors + arrivals.cut, arrivals.completed
    if good and failed > MOST * (failed + good):
        sentence = f"{failed:,} of {failed + good:,} requests failed: every latency and length is of the other {good:,} alone"
        yield Finding("most_failed", FindingLevel.ADVICE, sentence, numbers={"lost": failed, "answered": good})
