"""Metrics of single requests, and what is derived from them."""

from __future__ import annotations

import numpy as np
from aiperf import Column, Metric, Needs, RecordBatch, RunMetric, Totals, Unit

_LATENCY, _OUTPUT = "request_latency", "output_sequence_length"
_NS_PER_S = 1e9


class LatencyPerToken(Metric):
    """Latency in seconds over tokens of the answer; absent where either is 0, and with a first token or a prompt of 0."""

    tag = "latency_per_token"
    title = "Latency per Token"
    unit = Unit.RATIO
    needs = (_LATENCY, _OUTPUT)
    requires = Needs.TOKENS_OUT
    hidden = True
    per_record = False

    def column(self, batch: RecordBatch) -> Column:
        latency, tokens = batch[_LATENCY], batch[_OUTPUT]
        first, prompt = batch["first_token_ns"] - batch["started_ns"], batch["input_tokens"]
        counts = (latency > 0) & (tokens > 0) & ~(first <= 0) & ~(prompt <= 0)
        per_token: Column = np.divide(latency / _NS_PER_S, tokens, out=np.full(len(batch), np.nan), where=counts)
        return per_token


class _Interactivity(RunMetric):
    unit = Unit.TOKENS_PER_SECOND_PER_USER
    needs = (LatencyPerToken.tag,)
    requires = Needs.TOKENS_OUT
    larger_is_better = True
    percentile = ""

    def number(self, run: Totals) -> float | None:
        per_token = run.statistic(LatencyPerToken.tag, self.percentile)
        return 1 / per_token if per_token else None


class InteractivityP75(_Interactivity):
    """Tokens a second at the 75th percentile of latency per token of the answer: the slow tail, not the fast one."""

    tag = "e2e_normalized_interactivity_p75"
    title = "E2E Normalized Interactivity P75"
    percentile = "p75"


class InteractivityP90(_Interactivity):
    """Tokens a second at the 90th percentile of latency per token of the answer: the slow tail, not the fast one."""

    tag = "e2e_normalized_interactivity_p90"
    title = "E2E Normalized Interactivity P90"
    percentile = "p90"


class StartLag(Metric):
    """From the due time of a tree's request to its first byte; absent without a due time.

    Absent where no conversation starts others.  The due time is behind joins, order and caps of idle time.
    """

    tag = "start_lag"
    title = "Start Lag"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    group = "Trees"
    order = 900

    def column(self, batch: RecordBatch) -> Column:
        if "stream" not in batch.columns:
            return np.full(len(batch), np.nan)
        return batch["sent_ns"] - batch["due_ns"]
