"""The length of vectors, and the warning where it changes."""

from __future__ import annotations

from aiperf import Finding
from aiperf.testing import MetricContract, sample_evidence
from aiperf_metric_embeddings import EmbeddingDimensions
from aiperf_metric_embeddings.contract import EmbeddingsContract, lengths
from aiperf_metric_embeddings.verdict import Embeddings


class TestTheMetricKeepsTheContract(MetricContract):
    metric = EmbeddingDimensions()


class TestTheVerdictKeepsTheContract(EmbeddingsContract):
    pass


def test_the_warning_names_both_lengths() -> None:
    finding = Embeddings().judge(sample_evidence(lengths(384, 768)))
    assert isinstance(finding, Finding)
    assert "from 384 to 768 dimensions" in finding.sentence
    assert finding.numbers == {"least": 384, "most": 768}
