"""Visible reasoning, and its ratio to the output.

The time to the first token includes reasoning, the time to the first output token doesn't; the output sequence length counts
both.
"""

from __future__ import annotations

import numpy as np
from aiperf import Column, Metric, Needs, RecordBatch, RunMetric, Totals, Unit


class ReasoningTokenCount(Metric):
    """Reasoning tokens; absent without visible reasoning."""

    tag = "reasoning_token_count"
    title = "Reasoning Token Count"
    unit = Unit.TOKENS
    requires = Needs.TOKENS_OUT
    larger_is_better = True
    arriving = True

    def column(self, batch: RecordBatch) -> Column:
        return batch["reasoning_tokens"]


class TotalReasoningTokens(RunMetric):
    """All reasoning tokens."""

    tag = "total_reasoning_tokens"
    title = "Total Reasoning Tokens"
    needs = ("reasoning_token_count",)
    unit = Unit.TOKENS
    requires = Needs.TOKENS_OUT
    larger_is_better = True

    def number(self, run: Totals) -> float | None:
        return run.sum("reasoning_token_count")


class ThinkingEfficiency(Metric):
    """Reasoning tokens per output token; absent without output."""

    tag = "thinking_efficiency"
    title = "Thinking Efficiency"
    unit = Unit.RATIO
    group = "Reasoning"
    order = 1
    needs = ("reasoning_token_count", "output_token_count")
    requires = Needs.TOKENS_OUT | Needs.EXPERIMENTAL

    def column(self, batch: RecordBatch) -> Column:
        output = batch["output_token_count"]
        share: Column = np.divide(
            batch["reasoning_token_count"], output, out=np.full(len(batch), np.nan), where=output > 0
        )
        return share


class OverallThinkingEfficiency(RunMetric):
    """Reasoning tokens per output token of all requests together."""

    tag = "overall_thinking_efficiency"
    title = "Overall Thinking Efficiency"
    unit = Unit.RATIO
    group = "Reasoning"
    order = 2
    needs = ("total_reasoning_tokens", "total_output_tokens")
    requires = Needs.TOKENS_OUT | Needs.EXPERIMENTAL

    def number(self, run: Totals) -> float | None:
        reasoning, output = run.value("total_reasoning_tokens"), run.value("total_output_tokens")
        return reasoning / output if reasoning is not None and output else None
