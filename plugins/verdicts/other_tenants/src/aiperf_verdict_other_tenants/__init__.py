"""How much of the server's work was not that of the run."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict


class OtherTenants(Verdict[None]):
    """Advice on each server that worked for others, too, in the profiling phase.

    It is judged by what the server counts more than the run can have caused, in this order; the first that tells is said:

    requests: what it answered less all requests of which a byte was sent.  Requests of earlier phases, and of the run before,
    that it may have counted late are the run's own.  The rest can only be others' (confidence 1).  A hundredth of all, and two
    requests, are spoken of.

    tokens: what it generated, or read, less the answers' ``usage``, where every request was answered, from a twentieth on.

    running: requests in work and waiting at each sample, less the run's requests in flight at that moment.  A sample that
    comes late shifts the curve and leaves its mean; requests travel, so that the client has them longer than the server.  The
    phase is cut into 8 parts of equal length, and their mean differences are taken as one value each, because neighbouring
    samples depend on each other: t = mean / (deviation / sqrt 8), with 7 degrees of freedom, must be above 4.785 (one-sided
    0.1 %), and the lower end of that interval above a twentieth of the server's work.

    A server without any of the three is not judged.  Requests are not counted where one has several answers, or makes no
    tokens: engines count each answer, and each of several inputs, as one.  Counters that began again are not judged either.
    Pages at other places than the run's URLs are taken together: they may be those of the servers behind a gateway.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if not evidence.summary.telemetry:
            return
        from aiperf_verdict_other_tenants.work import foreign_work

        for work in foreign_work(evidence):
            yield Finding("other_tenants", FindingLevel.ADVICE, work.sentence, work.confidence, work.numbers)


__all__ = ["OtherTenants"]
