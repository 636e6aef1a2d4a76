"""Counts of failed requests, and of those that exceeded the model's context."""

from __future__ import annotations

import re

import numpy as np
from aiperf import Aggregation, Column, Metric, Over, RecordBatch, RunMetric, Totals, Unit

_OVERFLOW = re.compile(
    r"context[ _](length|window|size)|(maximum|max)[ _](context|sequence|input|model)[ _]len|max_model_len"
    r"|(exceeds?|more than|longer than|too long for)\b.{0,40}\bcontext|max_new_tokens`? must be <="
    r"|(prompt|input|inputs?`? tokens?)\b.{0,60}\b(too long|exceeds?|longer than)",
    re.IGNORECASE,
)
"""Phrases of servers: OpenAI, vLLM and SGLang name the context length, Anthropic and Bedrock a prompt or input that is too
long, Gemini a token count above the maximum, TGI the sum of inputs and max_new_tokens."""


class ErrorRequestCount(Metric):
    """Requests that failed; absent where none did."""

    tag = "error_request_count"
    title = "Error Request Count"
    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    over = Over.FAILED
    per_record = False

    def column(self, batch: RecordBatch) -> Column:
        return np.ones(len(batch))


class ContextOverflowCount(Metric):
    """Requests that failed because prompt and answer exceed the model's context, according to the server's message."""

    tag = "context_overflow_count"
    title = "Context Overflow Count"
    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    over = Over.FAILED
    per_record = False

    def column(self, batch: RecordBatch) -> Column:
        found = np.zeros(len(batch))
        for row in np.flatnonzero(~batch.valid).tolist():  # few, or none
            error = batch.texts["error"][row]
            found[row] = error is not None and _OVERFLOW.search(error) is not None
        return found


class RequestErrorRate(RunMetric):
    """Share of failed requests among those that ended."""

    tag = "request_error_rate"
    title = "Request Error Rate"
    unit = Unit.PERCENT
    order = 1080

    def number(self, run: Totals) -> float | None:
        total = run.valid + run.failed
        return 100.0 * run.failed / total if total else None
