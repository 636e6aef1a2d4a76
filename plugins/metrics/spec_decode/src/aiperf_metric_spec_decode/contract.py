"""Contracts with material for these metrics and this verdict.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from typing import Any

from aiperf import RecordBatch, Result
from aiperf.testing import MetricContract, VerdictContract, sample_batch, sample_evidence
from aiperf_dialects.spec_decode import SPEC_DECODE

from aiperf_metric_spec_decode.metrics import (
    PooledHistogram,
    SpecDecodeAcceptanceLength,
    SpecDecodeAcceptedDraftTokens,
    SpecDecodeAcceptedPerVerified,
    SpecDecodeDraftAcceptanceRate,
    SpecDecodeDraftTokens,
    SpecDecodeIgnored,
    SpecDecodeSteps,
)
from aiperf_metric_spec_decode.verdict import SpecDecode

# 2 steps accepted none of their drafts, 1 one, 3 two: 6 steps, 7 accepted, 12 drafted.
GOOD: dict[str, Any] = {
    "acceptance_histogram": [2, 1, 3], "num_spec_steps": 6, "num_accepted_draft_tokens": 7, "num_draft_tokens": 12,
    "mean_acceptance_length": 13 / 6, "draft_acceptance_rate": 7 / 12, "num_spec_tokens": 2,
}  # fmt: skip


class _Accounts(MetricContract):
    """Every other request has an account; every fourth contradicts itself."""

    def batch(self) -> RecordBatch:
        given = sample_batch()
        said = (None, json.dumps(GOOD), None, json.dumps({**GOOD, "num_spec_steps": 5}))
        texts = [said[row % 4] for row in range(len(given))]
        return RecordBatch(given.columns, given.valid, {**given.texts, SPEC_DECODE: texts})


class StepsContract(_Accounts):
    metric = SpecDecodeSteps()


class AcceptedDraftTokensContract(_Accounts):
    metric = SpecDecodeAcceptedDraftTokens()


class DraftTokensContract(_Accounts):
    metric = SpecDecodeDraftTokens()


class _Ratio(_Accounts):
    needed = (SpecDecodeSteps(), SpecDecodeAcceptedDraftTokens(), SpecDecodeDraftTokens())


class AcceptanceLengthContract(_Ratio):
    metric = SpecDecodeAcceptanceLength()


class DraftAcceptanceRateContract(_Ratio):
    metric = SpecDecodeDraftAcceptanceRate()


class AcceptedPerVerifiedContract(_Ratio):
    metric = SpecDecodeAcceptedPerVerified()


class PooledHistogramContract(_Accounts):
    metric = PooledHistogram()


class IgnoredContract(_Accounts):
    metric = SpecDecodeIgnored()


def ignored(count: float) -> Result:
    return Result("spec_decode_ignored_count", "Spec Decode Ignored Count", "requests", {"avg": count})


class SpecDecodeContract(VerdictContract):
    """A run without such answers, and runs with one and with many."""

    verdict = SpecDecode
    cases = (
        (sample_evidence(), ()),
        (sample_evidence(ignored(1)), ("spec_decode_ignored",)),
        (sample_evidence(ignored(2000)), ("spec_decode_ignored",)),
    )
