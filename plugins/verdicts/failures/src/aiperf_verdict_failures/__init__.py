"""Why requests failed, and the next step, where their errors tell."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import ErrorDetails, Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.plan import Plan
from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.verdict import LIKELY, Look

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
        firsts: dict[str, ErrorDetails] = {}
        urls: dict[str, set[str]] = {}
        for seen in sorted(evidence.errors, key=lambda seen: seen.first_ns):
            kind, sentence = cause_of(seen.error, evidence.plan)
            if sentence:
                counts[kind] = counts.get(kind, 0) + seen.count
                firsts.setdefault(kind, seen.error)
                urls.setdefault(kind, set()).update(_urls_of(seen.error, evidence))
        for kind, error in firsts.items():
            plan = _narrowed(evidence.plan, urls[kind])
            _, sentence = cause_of(error, plan, evidence.looks)
            everything = counts[kind] == failed and not evidence.summary.valid
            share = "" if everything else f"{counts[kind]:,} of {failed:,} failed requests: "
            numbers: dict[str, int | float] = {"requests": counts[kind], "failed": failed}
            yield Finding(kind, FindingLevel.ADVICE, share + sentence, LIKELY, numbers, SCOPE)

    def explain(self, error: ErrorDetails, plan: Plan) -> Finding | None:
        kind, sentence = cause_of(error, plan)
        return Finding(kind, FindingLevel.ADVICE, sentence, LIKELY, scope=SCOPE) if sentence else None

    def look(self, look: Look) -> dict[str, str]:
        from aiperf_verdict_failures.look import looked  # threads: only where there is something to ask

        return looked(look)


def _urls_of(error: ErrorDetails, evidence: Evidence) -> Iterator[str]:
    """The URLs at which it was seen; all where nothing tells, as of kinds of errors beyond those that are counted apart."""
    given = evidence.plan.target.urls
    rows = {row.url for row in evidence.summary.urls if any(each.error == error for each in row.errors)}
    yield from [url for url in given if without_secrets(url) in rows] or given


def _narrowed(plan: Plan, urls: set[str]) -> Plan:
    """The plan with those of its URLs alone of which a sentence speaks."""
    return plan.replacing(urls=tuple(url for url in plan.target.urls if url in urls))


def _few_left(evidence: Evidence) -> Iterator[Finding]:
    """The finding that most requests failed, and the statistics are of the others."""
    arrivals = evidence.summary.measurement.arrivals
    failed, good = arrivals.errors + arrivals.cut, arrivals.completed
    if good and failed > MOST * (failed + good):
        sentence = f"{failed:,} of {failed + good:,} requests failed: every latency and length is of the other {good:,} alone"
        yield Finding("most_failed", FindingLevel.ADVICE, sentence, numbers={"lost": failed, "answered": good})
