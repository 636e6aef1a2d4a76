from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Aggregation, Over, RecordBatch
from aiperf.testing import MetricContract
from aiperf_metric_errors import ContextOverflowCount, ErrorRequestCount, RequestErrorRate
from aiperf_testing.manifests import check_row


class TestTheErrorCountKeepsTheContract(MetricContract):
    metric = ErrorRequestCount()


class TestTheOverflowCountKeepsTheContract(MetricContract):
    metric = ContextOverflowCount()


class Run:
    """How many requests succeeded and failed."""

    duration_s = window_s = 1.0

    def __init__(self, valid: int, failed: int) -> None:
        self.valid, self.failed = valid, failed


# 18 good answers and 12 failures, two of which say that the context is full.
WORKED = {"error_request_count": 12.0, "context_overflow_count": 2.0, "request_error_rate": 40.0}


def test_values_are_those_worked_out_by_hand():
    said = ["busy"] * 10 + ["maximum context length is 4096", "prompt is too long: 9 tokens"]
    failures = RecordBatch({}, np.zeros(12, dtype=bool), {"error": said})
    found = {kind.tag: kind().column(failures).sum() for kind in (ErrorRequestCount, ContextOverflowCount)}
    assert found | {RequestErrorRate.tag: RequestErrorRate().number(Run(18, 12))} == WORKED


@pytest.mark.parametrize(("valid", "failed", "rate"), [(18, 12, 40.0), (5, 0, 0.0), (0, 3, 100.0), (0, 0, None)])
def test_the_error_rate_is_a_share_of_ended_requests(valid, failed, rate):
    assert RequestErrorRate().number(Run(valid, failed)) == rate


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        '{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}',
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768)",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
        "max_model_len",
        "17 prompt tokens and 30 to be made are more than the context of 25 tokens",
    ],
)
def test_servers_that_say_the_context_is_full_are_understood(message):
    assert overflows(message) == [1.0]


@pytest.mark.parametrize(
    "message",
    ["Service Unavailable", "model not found", "Rate limit: too many tokens a minute", "invalid token", "timeout", None],
)
def test_other_failures_are_no_overflow(message):
    assert overflows(message) == [0.0]


def overflows(message: str | None) -> list[float]:
    batch = RecordBatch({}, np.zeros(1, dtype=bool), {"error": [message]})
    found: list[float] = ContextOverflowCount().column(batch).tolist()
    return found


def test_both_counts_cover_failed_requests_and_stay_out_of_records():
    for kind in (ErrorRequestCount, ContextOverflowCount):
        assert (kind.fold, kind.over, kind.per_record, kind.order) == (Aggregation.SUM, Over.FAILED, False, None)


def test_readers_of_the_references_files_find_the_names_they_know():
    rate = RequestErrorRate()
    assert (rate.title, rate.shown.value, rate.order, rate.larger_is_better) == ("Request Error Rate", "%", 1080, False)
    assert ErrorRequestCount.title == "Error Request Count"
    assert ContextOverflowCount.title == "Context Overflow Count"


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_errors" in each.value}
    assert registered == {kind.tag: kind for kind in (ErrorRequestCount, ContextOverflowCount, RequestErrorRate)}
    for kind in registered.values():
        check_row("metrics", kind)
