from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Aggregation, Over, RecordBatch, RunMetric
from aiperf.testing import MetricContract
from aiperf_metric_throughput import (
    BenchmarkDuration,
    CompletedRequestCount,
    InputTokenThroughput,
    MaxResponseTimestamp,
    MinRequestTimestamp,
    OutputTokenThroughput,
    RequestCount,
    RequestThroughput,
    TotalTokenThroughput,
)
from aiperf_testing.manifests import check_row

PER_REQUEST = (RequestCount, MinRequestTimestamp, MaxResponseTimestamp)
DERIVED = (
    CompletedRequestCount, BenchmarkDuration, RequestThroughput, OutputTokenThroughput, InputTokenThroughput,
    TotalTokenThroughput,
)  # fmt: skip


@pytest.mark.parametrize("kind", PER_REQUEST, ids=lambda kind: kind.tag)
class TestEachKeepsTheContract(MetricContract):
    metric = RequestCount()

    @pytest.fixture(autouse=True)
    def of(self, kind):
        self.metric = kind()


class Run:
    """A run's folded metrics, as a derived one sees them."""

    window_s = 99.0

    def __init__(self, duration_s: float | None, valid: int = 0, failed: int = 0, **values: float) -> None:
        self.duration_s, self.valid, self.failed, self.values = duration_s, valid, failed, values

    def sum(self, tag: str) -> float | None:
        return self.values.get(tag)

    def count(self, tag: str) -> int:
        return int(tag in self.values)

    def value(self, tag: str) -> float | None:
        return self.values.get(tag)


# 18 of 30 requests answered in 1.5 s from the first start to the last end.
RUN = Run(1.5, valid=18, failed=12, request_count=18.0, total_isl=600.0, total_osl=2400.0)


WORKED = {
    "completed_request_count": 30,
    "benchmark_duration": 1.5,
    "request_throughput": 12.0,
    "output_token_throughput": 1600.0,
    "input_token_throughput": 400.0,
    "total_token_throughput": 2000.0,
    # of one request, from 5 to its last content at 9
    "request_count": 1.0,
    "min_request_timestamp": 5.0,
    "max_response_timestamp": 9.0,
}


@pytest.mark.parametrize("kind", DERIVED, ids=lambda kind: kind.tag)
def test_numbers_of_the_run_are_those_worked_out_by_hand(kind):
    assert kind().number(RUN) == WORKED[kind.tag]


@pytest.mark.parametrize("kind", PER_REQUEST, ids=lambda kind: kind.tag)
def test_values_of_a_request_are_those_worked_out_by_hand(kind):
    times = {"started_ns": 5.0, "first_token_ns": 7.0, "last_token_ns": 9.0, "last_byte_ns": 11.0, "ended_ns": 12.0}
    batch = RecordBatch({name: np.array([at]) for name, at in times.items()}, np.array([True]))
    assert kind().column(batch).tolist() == [WORKED[kind.tag]]


def test_throughput_times_duration_is_the_count():
    assert RequestThroughput().number(RUN) * BenchmarkDuration().number(RUN) == RUN.value("request_count")


def test_a_run_without_an_end_has_no_rates_and_no_duration():
    nothing = Run(None, request_count=1.0, total_isl=1.0, total_osl=1.0)
    for kind in (BenchmarkDuration, RequestThroughput, OutputTokenThroughput, InputTokenThroughput, TotalTokenThroughput):
        assert kind().number(nothing) is None


def test_a_total_rate_needs_both_directions():
    assert TotalTokenThroughput().number(Run(1.0, total_isl=5.0)) is None


def test_counts_and_extremes_are_of_requests_that_succeeded():
    assert [(kind.fold, kind.over) for kind in PER_REQUEST] == [
        (Aggregation.SUM, Over.VALID), (Aggregation.MIN, Over.VALID), (Aggregation.MAX, Over.VALID),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "order", "title", "unit", "larger"),
    [
        (RequestCount, 1100, "Request Count", "requests", True),
        (CompletedRequestCount, 1075, "Completed Requests (Success + Error)", "requests", False),
        (BenchmarkDuration, None, "Benchmark Duration", "sec", False),
        (RequestThroughput, 900, "Request Throughput", "requests/sec", True),
        (OutputTokenThroughput, 800, "Output Token Throughput", "tokens/sec", True),
        (InputTokenThroughput, 805, "Input Token Throughput", "tokens/sec", True),
        (TotalTokenThroughput, None, "Total Token Throughput", "tokens/sec", True),
    ],
)
def test_readers_of_the_references_files_find_the_names_they_know(kind, order, title, unit, larger):
    metric = kind()
    assert (metric.order, metric.title, metric.shown.value, metric.larger_is_better) == (order, title, unit, larger)
    assert not metric.hidden


def test_the_extremes_are_for_other_metrics_alone():
    assert MinRequestTimestamp.hidden and MaxResponseTimestamp.hidden


def test_nothing_here_is_a_value_of_one_request():
    assert not any(kind.per_record for kind in PER_REQUEST)
    assert all(issubclass(kind, RunMetric) for kind in DERIVED)


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_throughput" in each.value}
    assert registered == {kind.tag: kind for kind in (*PER_REQUEST, *DERIVED)}
    for kind in registered.values():
        check_row("metrics", kind)
