"""Counts, durations and rates of the whole run.

Every rate divides by the benchmark duration: first request start to last response end over all sent requests, failed and
aborted ones included.  Rate times duration is the count, and an outage counts in full.
"""

from __future__ import annotations

import numpy as np
from aiperf import Aggregation, Column, Metric, Needs, RecordBatch, RunMetric, Totals, Unit


class RequestCount(Metric):
    """Requests that succeeded."""

    tag = "request_count"
    title = "Request Count"
    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    per_record = False
    larger_is_better = True
    order = 1100

    def column(self, batch: RecordBatch) -> Column:
        return np.ones(len(batch))


class CompletedRequestCount(RunMetric):
    """Requests that ended, successful or not."""

    tag = "completed_request_count"
    title = "Completed Requests (Success + Error)"
    unit = Unit.REQUESTS
    order = 1075

    def number(self, run: Totals) -> float | None:
        return run.valid + run.failed


class MinRequestTimestamp(Metric):
    """The earliest start, in ns since the run's start."""

    tag = "min_request_timestamp"
    title = "Minimum Request Timestamp"
    unit = Unit.NANOSECONDS
    fold = Aggregation.MIN
    per_record = False
    hidden = True

    def column(self, batch: RecordBatch) -> Column:
        return batch["started_ns"]


class MaxResponseTimestamp(Metric):
    """The latest last content, in ns since the run's start."""

    tag = "max_response_timestamp"
    title = "Maximum Response Timestamp"
    unit = Unit.NANOSECONDS
    fold = Aggregation.MAX
    per_record = False
    hidden = True

    def column(self, batch: RecordBatch) -> Column:
        return batch["last_token_ns"]


class BenchmarkDuration(RunMetric):
    """First request start to last response end, over all sent requests."""

    tag = "benchmark_duration"
    title = "Benchmark Duration"
    unit = Unit.SECONDS

    def number(self, run: Totals) -> float | None:
        return run.duration_s


class _Rate(RunMetric):
    """A sum per second of the benchmark duration."""

    larger_is_better = True

    def number(self, run: Totals) -> float | None:
        parts = [run.value(need) for need in self.needs]
        known = [part for part in parts if part is not None]
        return sum(known) / run.duration_s if run.duration_s and len(known) == len(parts) else None


class RequestThroughput(_Rate):
    """Successful requests per second."""

    tag = "request_throughput"
    title = "Request Throughput"
    unit = Unit.REQUESTS_PER_SECOND
    needs = ("request_count",)
    order = 900


class OutputTokenThroughput(_Rate):
    """Output and reasoning tokens per second."""

    tag = "output_token_throughput"
    title = "Output Token Throughput"
    unit = Unit.TOKENS_PER_SECOND
    needs = ("total_osl",)
    requires = Needs.TOKENS_OUT
    order = 800


class InputTokenThroughput(_Rate):
    """Input tokens per second."""

    tag = "input_token_throughput"
    title = "Input Token Throughput"
    unit = Unit.TOKENS_PER_SECOND
    needs = ("total_isl",)
    requires = Needs.TOKENS_IN
    order = 805


class TotalTokenThroughput(_Rate):
    """Tokens per second in both directions."""

    tag = "total_token_throughput"
    title = "Total Token Throughput"
    unit = Unit.TOKENS_PER_SECOND
    needs = ("total_isl", "total_osl")
    requires = Needs.TOKENS_IN | Needs.TOKENS_OUT
