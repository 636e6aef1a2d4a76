"""Speculative decoding: values worked out by hand, and what is ignored."""

from __future__ import annotations

import json
import math
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from aiperf import Metric, RecordBatch
from aiperf.testing import RunMetricContract
from aiperf_dialects.spec_decode import SPEC_DECODE
from aiperf_metric_spec_decode import acceptance as module
from aiperf_metric_spec_decode.acceptance import Acceptance, acceptance
from aiperf_metric_spec_decode.contract import (
    GOOD,
    AcceptanceLengthContract,
    AcceptedDraftTokensContract,
    AcceptedPerVerifiedContract,
    DraftAcceptanceRateContract,
    DraftTokensContract,
    IgnoredContract,
    PooledHistogramContract,
    SpecDecodeContract,
    StepsContract,
)
from aiperf_metric_spec_decode.metrics import (
    Places,
    PooledHistogram,
    SpecDecodeAcceptanceLength,
    SpecDecodeAcceptedDraftTokens,
    SpecDecodeAcceptedPerVerified,
    SpecDecodeDraftAcceptanceRate,
    SpecDecodeDraftTokens,
    SpecDecodeIgnored,
    SpecDecodeOverallDraftAcceptanceRate,
    SpecDecodeSteps,
    SpecDecodeTokenWeightedAcceptanceLength,
    TotalAcceptedDraftTokens,
    TotalDraftTokens,
    TotalSpecDecodeSteps,
)

NO_STEPS = {
    "acceptance_histogram": [0, 0, 0], "num_spec_steps": 0, "num_accepted_draft_tokens": 0, "num_draft_tokens": 0,
    "mean_acceptance_length": 1.0, "draft_acceptance_rate": 0.0,
}  # fmt: skip
DETAILED = {**GOOD, "per_step_accepted": [2, 0, 2, 1, 2, 0], "per_step_drafted": [2, 2, 2, 2, 2, 2]}


class TestVerdictKeepsTheContract(SpecDecodeContract):
    pass


class TestStepsKeepTheContract(StepsContract):
    pass


class TestAcceptanceLengthKeepsTheContract(AcceptanceLengthContract):
    pass


class TestAcceptedDraftTokensKeepsTheContract(AcceptedDraftTokensContract):
    pass


class TestDraftTokensKeepsTheContract(DraftTokensContract):
    pass


class TestDraftAcceptanceRateKeepsTheContract(DraftAcceptanceRateContract):
    pass


class TestAcceptedPerVerifiedKeepsTheContract(AcceptedPerVerifiedContract):
    pass


class TestPooledHistogramKeepsTheContract(PooledHistogramContract):
    pass


class TestIgnoredKeepsTheContract(IgnoredContract):
    pass


class TestTotalStepsKeepTheContract(RunMetricContract):
    metric = TotalSpecDecodeSteps()


class TestWeightedLengthKeepsTheContract(RunMetricContract):
    metric = SpecDecodeTokenWeightedAcceptanceLength()


def batch(*payloads: Any) -> RecordBatch:
    """A request for each payload, None for one without."""
    count = len(payloads)
    columns = {"ended_ns": np.arange(count, dtype=float), "usage_completion_tokens": np.full(count, 14.0)}
    texts = [None if payload is None else json.dumps(payload) for payload in payloads]
    return RecordBatch(columns, np.ones(count, dtype=bool), {SPEC_DECODE: texts})


def values(metric: Metric, requests: RecordBatch) -> list[float | None]:
    metrics: dict[str, Metric] = {
        each.tag: each for each in (SpecDecodeSteps(), SpecDecodeAcceptedDraftTokens(), SpecDecodeDraftTokens())
    }
    column = metric.column(requests.viewed(lambda tag: metrics[tag].column(requests)))
    assert isinstance(column, np.ndarray)
    return [None if math.isnan(value) else value for value in column.tolist()]


WORKED = {
    # Of each of three requests: the one above, one without an account, one without steps.
    "spec_decode_steps": [6, None, 0],
    "spec_decode_accepted_draft_tokens": [7, None, 0],
    "spec_decode_draft_tokens": [12, None, 0],
    "spec_decode_acceptance_length": [1 + 7 / 6, None, None],
    "spec_decode_draft_acceptance_rate": [100 * 7 / 12, None, None],
    "spec_decode_accepted_per_verified": [13 / 18, None, None],
    "spec_decode_ignored_count": [None, None, None],
    # Of a run with two requests: 6 and 4 steps, 7 and 2 accepted, 12 and 8 drafted.
    "total_spec_decode_steps": 10,
    "total_accepted_draft_tokens": 9,
    "total_draft_tokens": 20,
    "spec_decode_token_weighted_acceptance_length": 1.9,
    "spec_decode_overall_draft_acceptance_rate": 45.0,
    # Of the one above three times, and one without steps.
    "pooled_spec_decode_acceptance_histogram": {"0": 6, "1": 3, "2": 9},
}


@pytest.mark.parametrize("metric", [
    SpecDecodeSteps(), SpecDecodeAcceptedDraftTokens(), SpecDecodeDraftTokens(), SpecDecodeAcceptanceLength(),
    SpecDecodeDraftAcceptanceRate(), SpecDecodeAcceptedPerVerified(), SpecDecodeIgnored(),
], ids=lambda metric: metric.tag)  # fmt: skip
def test_values_are_those_worked_out_by_hand(metric: Metric) -> None:
    assert values(metric, batch(GOOD, None, NO_STEPS)) == pytest.approx(WORKED[metric.tag])


@pytest.mark.parametrize("metric", [SpecDecodeSteps(), SpecDecodeIgnored()])
def test_a_server_that_says_nothing_gives_nothing(metric: Metric) -> None:
    silent = RecordBatch({"ended_ns": np.zeros(2)}, np.ones(2, dtype=bool), {})
    assert values(metric, silent) == [None, None]
    assert SpecDecodeSteps().details(silent) == [None, None]
    assert PooledHistogram().column(silent).values.tolist() == []  # type: ignore[union-attr]


class _Run:
    """The totals of a run with two requests."""

    sums = {"spec_decode_steps": 10.0, "spec_decode_accepted_draft_tokens": 9.0, "spec_decode_draft_tokens": 20.0}

    def sum(self, tag: str) -> float | None:
        return self.sums.get(tag)

    def value(self, tag: str) -> float | None:
        derived: list[Any] = [TotalSpecDecodeSteps(), TotalAcceptedDraftTokens(), TotalDraftTokens()]
        found: float | None = next(each for each in derived if each.tag == tag).number(self)
        return found


def test_totals_are_weighted_by_steps_and_tokens() -> None:
    run: Any = _Run()
    totals = TotalSpecDecodeSteps(), TotalAcceptedDraftTokens(), TotalDraftTokens()
    for metric in (*totals, SpecDecodeTokenWeightedAcceptanceLength(), SpecDecodeOverallDraftAcceptanceRate()):
        assert metric.number(run) == pytest.approx(WORKED[metric.tag])
    run.sums = {}
    assert SpecDecodeTokenWeightedAcceptanceLength().number(run) is None


def test_the_pooled_histogram_adds_places() -> None:
    def folded(*payloads: Any) -> Places:
        fold = Places()
        column = PooledHistogram().column(batch(*payloads))
        fold.add(column.values)  # type: ignore[union-attr]
        return fold

    first, second = folded(GOOD, None, DETAILED), folded(NO_STEPS, GOOD)
    first.merge(Places.load(second.dump()))
    assert first.counts() == WORKED[PooledHistogram.tag]
    assert first.result() is None


def test_a_line_has_what_the_server_said() -> None:
    plain, nothing, detailed = SpecDecodeSteps().details(batch(GOOD, None, DETAILED))
    assert nothing is None
    assert plain is not None
    assert json.loads(plain) == {
        "engine": "vllm", "mean_acceptance_length": pytest.approx(13 / 6), "draft_acceptance_rate": pytest.approx(7 / 12),
        "acceptance_histogram": {"0": 2, "1": 1, "2": 3}, "num_accepted_draft_tokens": 7, "num_draft_tokens": 12,
        "num_spec_steps": 6, "num_spec_tokens": 2, "completion_tokens": 14,
    }  # fmt: skip
    assert detailed is not None
    assert json.loads(detailed)["per_step_accepted"] == DETAILED["per_step_accepted"]


@pytest.mark.parametrize("changes", [
    {"acceptance_histogram": [2, 1, 3, 0]}, {"acceptance_histogram": [2, 2, 3]}, {"num_accepted_draft_tokens": 8},
    {"num_draft_tokens": 6}, {"num_spec_steps": 7}, {"num_spec_steps": True, "acceptance_histogram": [0, 0, 1]},
    {"acceptance_histogram": [2.0, 1, 3]}, {"acceptance_histogram": [-1, 1, 6]}, {"num_draft_tokens": None},
    {"per_step_accepted": [2, 0, 2, 1, 2]}, {"per_step_accepted": [2, 0, 2, 2, 2, 0]}, {"per_step_drafted": [2] * 5 + [1]},
    {"per_step_accepted": [2, 0, 2, 1, 2, 0], "per_step_drafted": [1, 3, 2, 2, 2, 2]}, {"mean_acceptance_length": "2"},
    {"acceptance_histogram": [1 << 41], "num_spec_steps": 1 << 41, "num_accepted_draft_tokens": 0, "num_spec_tokens": 0},
], ids=str)  # fmt: skip
def test_what_contradicts_itself_is_ignored_and_counted(changes: dict[str, Any]) -> None:
    requests = batch(GOOD, {**DETAILED, **changes})
    assert values(SpecDecodeSteps(), requests) == [6, None]
    assert values(SpecDecodeIgnored(), requests) == [None, 1]


@pytest.mark.parametrize("payload", [[], "text", 7, {"acceptance_histogram": [1]}, {"num_spec_steps": 1}])
def test_what_no_engine_writes_is_ignored_and_counted(payload: Any) -> None:
    assert values(SpecDecodeIgnored(), batch(payload)) == [1]


class Other:
    """An engine of another package."""

    engine = "other"

    def recognises(self, payload: dict[str, Any]) -> bool:
        return "accept_len" in payload

    def read(self, payload: dict[str, Any]) -> Acceptance:
        return Acceptance(self.engine, (3, 1), 4, 1, 8)


def test_another_package_adds_an_engine(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    here = [EntryPoint("other", f"{__name__}:Other", module.GROUP), EntryPoint("gone", "nowhere:Nothing", module.GROUP)]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: here)
    module.adapters.cache_clear()
    acceptance.cache_clear()
    try:
        found = acceptance('{"accept_len": 1}')
        assert found is not None
        assert (found.engine, found.mean_length, found.draft_rate) == ("other", 1.25, 0.125)
        assert "the adapter gone of aiperf.spec_decode can't be loaded" in caplog.text
    finally:
        module.adapters.cache_clear()
        acceptance.cache_clear()
