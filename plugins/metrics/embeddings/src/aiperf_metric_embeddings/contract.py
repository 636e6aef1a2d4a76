"""The contract of verdicts with material for this one.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf import Result
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_metric_embeddings.verdict import Embeddings


def lengths(least: float, most: float) -> Result:
    """The result of a run with vectors of these lengths."""
    stats = {"avg": (least + most) / 2, "min": least, "max": most, "count": 2.0}
    return Result("embedding_dimensions", "Embedding Dimensions", "count", stats)


class EmbeddingsContract(VerdictContract):
    """Runs without vectors, with those of one length, and of two."""

    verdict = Embeddings
    cases = (
        (sample_evidence(), ()),
        (sample_evidence(lengths(384, 384)), ()),
        (sample_evidence(lengths(384, 768)), ("vector_lengths",)),
    )
