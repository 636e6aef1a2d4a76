"""Input and output tokens, counted by the run's tokenizer or by the server."""

from __future__ import annotations

import numpy as np
from aiperf import Aggregation, Column, Metric, Needs, Over, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.environment import number


class InputSequenceLength(Metric):
    """Tokens of all sent text parts; with --apply-chat-template, of the messages in the model's chat template."""

    tag = "input_sequence_length"
    title = "Input Sequence Length"
    short = "ISL"
    unit = Unit.TOKENS
    requires = Needs.TOKENS_IN
    larger_is_better = True
    order = 700

    def column(self, batch: RecordBatch) -> Column:
        return batch["input_tokens"]


class OutputSequenceLength(Metric):
    """Output and reasoning tokens; absent where neither was counted."""

    tag = "output_sequence_length"
    title = "Output Sequence Length"
    short = "OSL"
    unit = Unit.TOKENS
    requires = Needs.TOKENS_OUT
    larger_is_better = True
    order = 600
    arriving = True

    def column(self, batch: RecordBatch) -> Column:
        output, reasoning = batch["output_tokens"], batch["reasoning_tokens"]
        return np.where(np.isnan(output) & np.isnan(reasoning), np.nan, np.nan_to_num(output) + np.nan_to_num(reasoning))


class OutputTokenCount(Metric):
    """Output tokens without reasoning; absent without output."""

    tag = "output_token_count"
    title = "Output Token Count"
    short = "Output Tokens"
    unit = Unit.TOKENS
    requires = Needs.TOKENS_OUT
    larger_is_better = True
    arriving = True

    def column(self, batch: RecordBatch) -> Column:
        output = batch["output_tokens"]
        return np.where(output > 0, output, np.nan)


class ErrorInputSequenceLength(Metric):
    """Input tokens of requests that failed."""

    tag = "error_isl"
    title = "Error Input Sequence Length"
    unit = Unit.TOKENS
    requires = Needs.TOKENS_IN
    over = Over.FAILED
    larger_is_better = True

    def column(self, batch: RecordBatch) -> Column:
        return batch["input_tokens"]


class OslMismatch(Metric):
    """Signed difference of the output length from the requested one, in percent of the latter."""

    tag = "osl_mismatch_diff_pct"
    title = "OSL Mismatch Diff %"
    unit = Unit.PERCENT
    needs = ("output_sequence_length",)
    requires = Needs.TOKENS_OUT | Needs.ONE_ANSWER | Needs.LENGTHS

    def column(self, batch: RecordBatch) -> Column:
        requested = batch["requested_tokens"]
        difference = (batch["output_sequence_length"] - requested) * 100
        share: Column = np.divide(difference, requested, out=np.full(len(batch), np.nan), where=requested > 0)
        return share


class OslMismatchCount(Metric):
    """Requests whose output length differs from the requested one by more than the smaller of two limits.

    ``AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD`` (5 % of the length) and ``AIPERF_METRICS_OSL_MISMATCH_MAX_TOKEN_THRESHOLD``
    (50 tokens) set the limits.
    """

    tag = "osl_mismatch_count"
    title = "OSL Mismatch Count"
    unit = Unit.REQUESTS
    needs = ("output_sequence_length",)
    requires = Needs.TOKENS_OUT | Needs.ONE_ANSWER | Needs.LENGTHS
    fold = Aggregation.SUM
    per_record = False

    def __init__(self) -> None:
        self.share = number("AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD", 0, 1e9, 5) / 100
        self.tokens = number("AIPERF_METRICS_OSL_MISMATCH_MAX_TOKEN_THRESHOLD", 0, 1e9, 50)

    def column(self, batch: RecordBatch) -> Column:
        requested = batch["requested_tokens"]
        difference = np.abs(batch["output_sequence_length"] - requested)
        limit = np.minimum(requested * self.share, self.tokens)
        return np.where(np.isnan(difference), np.nan, (difference > limit).astype(np.float64))


class _Total(RunMetric):
    """The sum of a record metric."""

    unit = Unit.TOKENS
    larger_is_better = True

    def number(self, run: Totals) -> float | None:
        return run.sum(self.needs[0])


class TotalIsl(_Total):
    """All input tokens of requests that succeeded."""

    tag = "total_isl"
    title = "Total Input Sequence Length"
    needs = ("input_sequence_length",)
    requires = Needs.TOKENS_IN


class TotalOsl(_Total):
    """All output and reasoning tokens."""

    tag = "total_osl"
    title = "Total Output Sequence Length"
    needs = ("output_sequence_length",)
    requires = Needs.TOKENS_OUT


class TotalOutputTokens(_Total):
    """All output tokens without reasoning."""

    tag = "total_output_tokens"
    title = "Total Output Tokens"
    needs = ("output_token_count",)
    requires = Needs.TOKENS_OUT


class TotalErrorIsl(_Total):
    """All input tokens of requests that failed."""

    tag = "total_error_isl"
    title = "Total Error Input Sequence Length"
    needs = ("error_isl",)
    requires = Needs.TOKENS_IN
