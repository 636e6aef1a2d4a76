"""The length of vectors, and the warning where it changes."""

from __future__ import annotations

import numpy as np
from aiperf import Finding, RecordBatch
from aiperf.testing import MetricContract, sample_evidence
from aiperf_metric_embeddings.contract import EmbeddingsContract, lengths
from aiperf_metric_embeddings.metrics import EmbeddingDimensions
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


# Two answers with vectors of 384 and 768 numbers, and one without vectors.
WORKED = {"embedding_dimensions": [384.0, 768.0, None]}


def test_values_are_those_worked_out_by_hand() -> None:
    batch = RecordBatch({"dimensions": np.array([384.0, 768.0, np.nan])}, np.ones(3, dtype=bool), {})
    found = [None if np.isnan(value) else value for value in EmbeddingDimensions().column(batch)]
    assert {EmbeddingDimensions.tag: found} == WORKED
