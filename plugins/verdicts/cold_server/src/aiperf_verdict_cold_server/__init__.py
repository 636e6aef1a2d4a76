"""Whether the server was slow at the beginning, and which warmup would cover it."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.verdict import LIKELY


class ColdServer(Verdict[None]):
    """Advice on a server that answered more slowly at the beginning of the profiling phase than later under the same load.

    Time to first token (or the latency of answers that are no stream) and inter-token latency are judged alike.  Each
    request is compared with requests of the last two thirds of the phase that were under the same load: as many in flight,
    or, where due times decide, as many begun in a usual latency; as many begun within a time to first token; prompts of the
    same length, without what was cached or was sent before; for counts and lengths within 30 %, for requests in flight
    around a first token within 50 %.  One without five of these is left out, as those of a load that rises are.  The others
    are cut into at most 24 blocks of as many requests each, in the order of their begins, and the median log ratio of each
    block is one value, because requests that follow each other depend on each other, and because their noise may have heavy
    tails.  The first j blocks, for every j within the first third, are tested against the n blocks of the rest by Student's t:

        t = (mean of j - mean of n) / (s sqrt(1 / j + 1 / n)),  s: deviation of the n, at least 2 %,  n - 1 degrees of freedom

    s is larger by sqrt((1 + r) / (1 - r)) where blocks depend on the block before with the correlation r.  The level is 0.001 /
    (2 x the number of j), one-sided, so that all looks together err once in 1,000 runs.  A factor of 1.2 is spoken of.  In a
    closed loop, whose users begin together and queue together, the time to first token alone tells nothing where the other
    is known.

    The first wave, as many requests as may be in flight, is judged by its fastest where nothing was warmed up: it was cold if
    even that one's time, divided by all that began with it, is three times the p95 of later ones and 50 ms more.  Under
    equal conditions a request is above the p95 once in 20, and three times above it, with tails of index 2, nine times less
    often: once in 180 runs at most.  With fewer than 20 later requests, nothing is said.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if evidence.summary.valid < FEWEST_REQUESTS:
            return
        from aiperf_verdict_cold_server.told import told

        found = told(evidence)
        if found is not None:
            yield Finding("cold_server", FindingLevel.ADVICE, found.sentence, LIKELY, found.numbers)


FEWEST_REQUESTS = 21
"""Good requests of a run that is judged."""
__all__ = ["FEWEST_REQUESTS", "ColdServer"]
