"""Whether all vectors of a run have one length."""

from __future__ import annotations

from aiperf import Evidence, Finding, FindingLevel, Verdict

_TAG = "embedding_dimensions"


class Embeddings(Verdict[None]):
    def judge(self, evidence: Evidence) -> Finding | None:
        found = evidence.summary.results.get(_TAG)
        if found is None or found.stats["min"] == found.stats["max"]:
            return None
        least, most = int(found.stats["min"]), int(found.stats["max"])
        sentence = f"vectors have from {least:,} to {most:,} dimensions: do several models, or several servers, answer?"
        return Finding("vector_lengths", FindingLevel.ADVICE, sentence, numbers={"least": least, "most": most})
