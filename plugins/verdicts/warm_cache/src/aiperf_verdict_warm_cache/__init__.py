"""Whether prompts were in the server's prefix cache before the run sent them."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict


class WarmCache(Verdict[None]):
    """Advice on prompt tokens from a prefix cache that this run did not fill, and on prompts that the run sent twice.

    For each request there is a bound of what a perfect cache could have had from the run itself: all of a prompt that was sent
    before, of a later turn the prompt and the answer of the turn before, and of a first turn the longest beginning that its
    body shares with any other prompt of the run, by its share of the body's bytes, a quarter more, and what the server adds
    to each prompt (its chat template).  ``warm_cache`` is what the cache gave beyond these bounds: the hits that the server
    counts, less the sum of all bounds, or, by the cached tokens of ``usage``, the sum over the requests of what is beyond
    their own. Both are counts: no sample and no level of error is in them.  From a twentieth of the prompt tokens on it is
    said, because a time to first token is then about as much too short.  ``repeated_prompts`` is what the cache had of
    prompts that the run sent before, from a tenth on.

    The server's hits count where it worked for nobody else, else the answers' ``usage``; without it, the server's hits less all
    prompt tokens of others.  Where neither is known, nothing is said.
    """

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if not evidence.summary.telemetry and not evidence.answers.cached_tokens:
            return
        from aiperf_verdict_warm_cache.shares import cached

        found = cached(evidence)
        if found is None:
            return
        if found.foreign_finding is not None:
            sentence, confidence, numbers = found.foreign_finding
            yield Finding("warm_cache", FindingLevel.ADVICE, sentence, confidence, numbers, "time to first token")
        if found.repeated_finding is not None:
            sentence, confidence, numbers = found.repeated_finding
            yield Finding("repeated_prompts", FindingLevel.ADVICE, sentence, confidence, numbers, "time to first token")


__all__ = ["WarmCache"]
