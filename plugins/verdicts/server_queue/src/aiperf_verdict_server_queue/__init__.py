"""How much of the time to first token requests spent in the server's queue."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.verdict import CERTAIN, LIKELY


class ServerQueue(Verdict[None]):
    """Advice on each server in whose queue requests spent a quarter of their time to first token, or more.

    The share is the mean wait over the mean time to first token, of the same requests: both are sums of the server's own
    histograms over the phase, divided by their counts.  It is counted, not estimated: no bucket and no sample is in it, so that
    there is no level of error.  Of a server without a histogram of waits the mean is that of Little's law, the mean number of
    waiting requests over the requests a second; three standard errors of that number must not lower the share below a quarter.
    A wait shorter than one and a half mean times between tokens is none: a request waits for the end of the step under way
    where nobody queues, too.  Where that time is not known, two fifths are spoken of.  A server without waits and levels is
    not judged.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if not evidence.summary.telemetry:
            return
        from aiperf_verdict_server_queue.waits import waits

        for wait in waits(evidence):
            yield Finding(
                "server_queue", FindingLevel.ADVICE, wait.sentence, CERTAIN if wait.exact else LIKELY, wait.numbers,
                "time to first token" if wait.streamed else "request latency",
            )  # fmt: skip


__all__ = ["ServerQueue"]
