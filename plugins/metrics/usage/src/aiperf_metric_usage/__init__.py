"""Token counts of the server, their totals, and their differences from the client's counts.

Each number comes from the last usage object of an answer; a missing field is absent, not zero.
"""

from __future__ import annotations

import numpy as np
from aiperf import Aggregation, Column, Metric, Needs, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.environment import number

_GROUP = "Usage"


class _Reported(Metric):
    """A column of the kernel without change."""

    unit = Unit.TOKENS
    group = _GROUP
    larger_is_better = True
    source: str

    def column(self, batch: RecordBatch) -> Column:
        return batch[self.source]


class _Total(RunMetric):
    """The sum of a count over the run."""

    group = _GROUP

    def __init_subclass__(cls, of: type[_Reported], tag: str = "") -> None:
        cls.tag, cls.title, cls.unit = tag or f"total_{of.tag}", f"Total {of.title}", of.unit
        cls.needs, cls.requires, cls.larger_is_better = (of.tag,), of.requires, of.larger_is_better
        cls.order = None if of.order is None else of.order + 1000

    def number(self, run: Totals) -> float | None:
        return run.sum(self.needs[0])


class UsagePromptTokens(_Reported):
    """Prompt tokens, those from the prefix cache included."""

    tag = "usage_prompt_tokens"
    title = "Usage Prompt Tokens"
    order = 1000
    source = "usage_prompt_tokens"
    requires = Needs.TOKENS_IN


class UsagePromptCacheReadTokens(_Reported):
    """Prompt tokens that came from the prefix cache."""

    tag = "usage_prompt_cache_read_tokens"
    title = "Usage Prompt Cache Read Tokens"
    order = 1010
    source = "usage_cached_tokens"


class UsagePromptCacheWriteTokens(_Reported):
    """Prompt tokens written to the prefix cache."""

    tag = "usage_prompt_cache_write_tokens"
    title = "Usage Prompt Cache Write Tokens"
    order = 1015
    source = "usage_cache_write_tokens"
    larger_is_better = False


class UsagePromptCacheMissTokens(_Reported):
    """Prompt tokens that were not in the prefix cache."""

    tag = "usage_prompt_cache_miss_tokens"
    title = "Usage Prompt Cache Miss Tokens"
    order = 1017
    source = "usage_cache_miss_tokens"
    larger_is_better = False


class UsagePromptAudioTokens(_Reported):
    """Audio tokens in the prompt."""

    tag = "usage_prompt_audio_tokens"
    title = "Usage Prompt Audio Tokens"
    order = 1020
    source = "usage_prompt_audio_tokens"


class UsageToolUsePromptTokens(_Reported):
    """Prompt tokens of results of the server's own tool calls."""

    tag = "usage_tool_use_prompt_tokens"
    title = "Usage Tool Use Prompt Tokens"
    order = 1030
    source = "usage_tool_tokens"
    larger_is_better = False


class UsagePromptAudioSeconds(_Reported):
    """Length of the audio in the prompt."""

    tag = "usage_prompt_audio_seconds"
    title = "Usage Prompt Audio Seconds"
    order = 1040
    source = "usage_audio_s"
    unit = Unit.SECONDS


class UsageCompletionTokens(_Reported):
    """Tokens of the answer, reasoning included."""

    tag = "usage_completion_tokens"
    title = "Usage Completion Tokens"
    order = 1100
    source = "usage_completion_tokens"
    requires = Needs.TOKENS_OUT


class UsageReasoningTokens(_Reported):
    """Tokens of reasoning."""

    tag = "usage_reasoning_tokens"
    title = "Usage Reasoning Tokens"
    order = 1110
    source = "usage_reasoning_tokens"
    requires = Needs.TOKENS_OUT


class UsageCompletionAudioTokens(_Reported):
    """Audio tokens in the answer."""

    tag = "usage_completion_audio_tokens"
    title = "Usage Completion Audio Tokens"
    order = 1120
    source = "usage_completion_audio_tokens"
    requires = Needs.TOKENS_OUT


class UsageAcceptedPredictionTokens(_Reported):
    """Tokens of the predicted output that the answer accepted."""

    tag = "usage_accepted_prediction_tokens"
    title = "Usage Accepted Prediction Tokens"
    order = 1130
    source = "usage_accepted_tokens"
    requires = Needs.TOKENS_OUT


class UsageRejectedPredictionTokens(_Reported):
    """Tokens of the predicted output that the answer rejected."""

    tag = "usage_rejected_prediction_tokens"
    title = "Usage Rejected Prediction Tokens"
    order = 1140
    source = "usage_rejected_tokens"
    requires = Needs.TOKENS_OUT
    larger_is_better = False


class UsageTotalTokens(_Reported):
    """Tokens of prompt and answer, by the server's sum."""

    tag = "usage_total_tokens"
    title = "Usage Total Tokens"
    order = 1200
    source = "usage_total_tokens"
    requires = Needs.TOKENS_OUT


class TotalUsagePromptTokens(_Total, of=UsagePromptTokens):
    """All prompt tokens."""


class TotalUsagePromptCacheReadTokens(_Total, of=UsagePromptCacheReadTokens):
    """All prompt tokens from the prefix cache."""


class TotalUsagePromptCacheWriteTokens(_Total, of=UsagePromptCacheWriteTokens):
    """All prompt tokens written to the prefix cache."""


class TotalUsagePromptCacheMissTokens(_Total, of=UsagePromptCacheMissTokens):
    """All prompt tokens that were not in the prefix cache."""


class TotalUsagePromptAudioTokens(_Total, of=UsagePromptAudioTokens):
    """All audio tokens in prompts."""


class TotalUsageToolUsePromptTokens(_Total, of=UsageToolUsePromptTokens):
    """All prompt tokens of results of the server's own tool calls."""


class TotalUsagePromptAudioSeconds(_Total, of=UsagePromptAudioSeconds):
    """Length of all audio in prompts."""


class TotalUsageCompletionTokens(_Total, of=UsageCompletionTokens):
    """All tokens of answers."""


class TotalUsageReasoningTokens(_Total, of=UsageReasoningTokens):
    """All tokens of reasoning."""


class TotalUsageCompletionAudioTokens(_Total, of=UsageCompletionAudioTokens):
    """All audio tokens in answers."""


class TotalUsageAcceptedPredictionTokens(_Total, of=UsageAcceptedPredictionTokens):
    """All predicted tokens that answers accepted."""


class TotalUsageRejectedPredictionTokens(_Total, of=UsageRejectedPredictionTokens):
    """All predicted tokens that answers rejected."""


class TotalUsageTotalTokens(_Total, of=UsageTotalTokens):
    """All tokens, by the server's sums."""


class OverallUsagePromptCacheReadPct(RunMetric):
    """Share of prompt tokens from the prefix cache, over all requests."""

    tag = "overall_usage_prompt_cache_read_pct"
    title = "Overall Usage Prompt Cache Read %"
    unit = Unit.PERCENT
    group = _GROUP
    order = 2012
    needs = ("usage_prompt_cache_read_tokens", "usage_prompt_tokens")
    larger_is_better = True

    def number(self, run: Totals) -> float | None:
        read, prompt = run.sum("usage_prompt_cache_read_tokens"), run.sum("usage_prompt_tokens")
        return 100 * read / prompt if read is not None and prompt else None


class _Difference(Metric):
    """Unsigned difference of the server's count from the client's, in percent of the latter.

    Absent where either is zero: a server that counts nothing says 0.
    """

    unit = Unit.PERCENT

    def column(self, batch: RecordBatch) -> Column:
        reported, counted = (batch[need] for need in self.needs)
        difference = np.abs(reported - counted) * 100
        both = (counted > 0) & (reported > 0)
        share: Column = np.divide(difference, counted, out=np.full(len(batch), np.nan), where=both)
        return share


class UsagePromptTokensDifference(_Difference):
    """Unsigned difference of the server's prompt tokens from the client's input tokens, in percent of the latter."""

    tag = "usage_prompt_tokens_diff_pct"
    title = "Usage Prompt Diff %"
    needs = ("usage_prompt_tokens", "input_sequence_length")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_IN


class UsageCompletionTokensDifference(_Difference):
    """Unsigned difference of the server's completion tokens from the client's output tokens, in percent of the latter."""

    tag = "usage_completion_tokens_diff_pct"
    title = "Usage Completion Diff %"
    needs = ("usage_completion_tokens", "output_sequence_length")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_OUT


class UsageReasoningTokensDifference(_Difference):
    """Unsigned difference of the server's reasoning tokens from the client's, in percent of the latter."""

    tag = "usage_reasoning_tokens_diff_pct"
    title = "Usage Reasoning Diff %"
    needs = ("usage_reasoning_tokens", "reasoning_token_count")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_OUT


class UsagePromptTokensExtra(Metric):
    """The server's prompt tokens beyond the client's input tokens: a chat template adds the same number to each prompt.

    Absent where the server says 0.
    """

    tag = "usage_prompt_tokens_extra"
    title = "Usage Prompt Extra Tokens"
    unit = Unit.TOKENS
    needs = ("usage_prompt_tokens", "input_sequence_length")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_IN

    def column(self, batch: RecordBatch) -> Column:
        reported = batch["usage_prompt_tokens"]
        return np.where(reported > 0, reported - batch["input_sequence_length"], np.nan)


class UsageInterTokenLatency(Metric):
    """Inter-token latency by the server's count of the answer's tokens."""

    tag = "usage_inter_token_latency"
    title = "Usage Inter Token Latency"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    needs = ("inter_token_latency", "usage_completion_tokens", "output_sequence_length")
    rises = ("inter_token_latency",)
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_OUT | Needs.STREAMING | Needs.ONE_ANSWER

    def column(self, batch: RecordBatch) -> Column:
        ours, reported, counted = (batch[need] for need in self.needs)
        factor = np.divide(counted - 1, reported - 1, out=np.full(len(batch), np.nan), where=reported > 1)
        latency: Column = ours * factor
        return latency


class UsageDiscrepancyCount(Metric):
    """Requests whose prompt, answer or reasoning count of the server differs from the client's by more than a limit.

    ``AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD`` (10 %) is the limit.  Absent where prompt or answer can't be compared.
    """

    tag = "usage_discrepancy_count"
    title = "Usage Discrepancy Count"
    unit = Unit.REQUESTS
    fold = Aggregation.SUM
    per_record = False
    needs = ("usage_prompt_tokens_diff_pct", "usage_completion_tokens_diff_pct", "usage_reasoning_tokens_diff_pct")
    requires = Needs.CLIENT_TOKENS

    def __init__(self) -> None:
        self.limit_pct = number("AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD", 0, 1e9, 10)

    def column(self, batch: RecordBatch) -> Column:
        prompt, completion, reasoning = (batch[need] for need in self.needs)
        comparable = ~np.isnan(prompt + completion)
        largest = np.fmax(np.maximum(prompt, completion), np.where(comparable, reasoning, np.nan))
        return np.where(np.isnan(largest), np.nan, (largest > self.limit_pct).astype(np.float64))
