"""What the server says it counted, its totals, and how far that is from what the client counted.

Every number is of the last usage object that an answer carried; what a server doesn't say is absent, not zero.
"""

from __future__ import annotations

import numpy as np
from aiperf import Column, Fold, Metric, Needs, RecordBatch, RunMetric, Totals, Unit
from aiperf.environment import number

_GROUP = "Usage"


class _Said(Metric):
    """A column of the kernel as it is."""

    unit = Unit.TOKENS
    group = _GROUP
    larger_is_better = True
    said: str

    def column(self, batch: RecordBatch) -> Column:
        return batch[self.said]


class _Total(RunMetric):
    """The sum of a count over the run."""

    group = _GROUP

    def __init_subclass__(cls, of: type[_Said], tag: str = "") -> None:
        cls.tag, cls.title, cls.unit = tag or f"total_{of.tag}", f"Total {of.title}", of.unit
        cls.needs, cls.requires, cls.larger_is_better = (of.tag,), of.requires, of.larger_is_better
        cls.order = None if of.order is None else of.order + 1000

    def number(self, run: Totals) -> float | None:
        return run.sum(self.needs[0])


class UsagePromptTokens(_Said):
    """Tokens of the prompt, those from the prefix cache included."""

    tag = "usage_prompt_tokens"
    title = "Usage Prompt Tokens"
    order = 1000
    said = "usage_prompt_tokens"
    requires = Needs.TOKENS_IN


class UsagePromptCacheReadTokens(_Said):
    """Prompt tokens that came from the prefix cache."""

    tag = "usage_prompt_cache_read_tokens"
    title = "Usage Prompt Cache Read Tokens"
    order = 1010
    said = "usage_cached_tokens"


class UsagePromptCacheWriteTokens(_Said):
    """Prompt tokens that were put into the prefix cache."""

    tag = "usage_prompt_cache_write_tokens"
    title = "Usage Prompt Cache Write Tokens"
    order = 1015
    said = "usage_cache_write_tokens"
    larger_is_better = False


class UsagePromptCacheMissTokens(_Said):
    """Prompt tokens that were not in the prefix cache."""

    tag = "usage_prompt_cache_miss_tokens"
    title = "Usage Prompt Cache Miss Tokens"
    order = 1017
    said = "usage_cache_miss_tokens"
    larger_is_better = False


class UsagePromptAudioTokens(_Said):
    """Tokens of sound in the prompt."""

    tag = "usage_prompt_audio_tokens"
    title = "Usage Prompt Audio Tokens"
    order = 1020
    said = "usage_prompt_audio_tokens"


class UsageToolUsePromptTokens(_Said):
    """Prompt tokens of results of tools that the server itself called."""

    tag = "usage_tool_use_prompt_tokens"
    title = "Usage Tool Use Prompt Tokens"
    order = 1030
    said = "usage_tool_tokens"
    larger_is_better = False


class UsagePromptAudioSeconds(_Said):
    """Length of the sound in the prompt."""

    tag = "usage_prompt_audio_seconds"
    title = "Usage Prompt Audio Seconds"
    order = 1040
    said = "usage_audio_s"
    unit = Unit.SECONDS


class UsageCompletionTokens(_Said):
    """Tokens of the answer, reasoning included."""

    tag = "usage_completion_tokens"
    title = "Usage Completion Tokens"
    order = 1100
    said = "usage_completion_tokens"
    requires = Needs.TOKENS_OUT


class UsageReasoningTokens(_Said):
    """Tokens of reasoning."""

    tag = "usage_reasoning_tokens"
    title = "Usage Reasoning Tokens"
    order = 1110
    said = "usage_reasoning_tokens"
    requires = Needs.TOKENS_OUT


class UsageCompletionAudioTokens(_Said):
    """Tokens of sound in the answer."""

    tag = "usage_completion_audio_tokens"
    title = "Usage Completion Audio Tokens"
    order = 1120
    said = "usage_completion_audio_tokens"
    requires = Needs.TOKENS_OUT


class UsageAcceptedPredictionTokens(_Said):
    """Tokens of the predicted output that the answer took over."""

    tag = "usage_accepted_prediction_tokens"
    title = "Usage Accepted Prediction Tokens"
    order = 1130
    said = "usage_accepted_tokens"
    requires = Needs.TOKENS_OUT


class UsageRejectedPredictionTokens(_Said):
    """Tokens of the predicted output that the answer didn't take over."""

    tag = "usage_rejected_prediction_tokens"
    title = "Usage Rejected Prediction Tokens"
    order = 1140
    said = "usage_rejected_tokens"
    requires = Needs.TOKENS_OUT
    larger_is_better = False


class UsageTotalTokens(_Said):
    """Tokens of prompt and answer, as the server adds them up."""

    tag = "usage_total_tokens"
    title = "Usage Total Tokens"
    order = 1200
    said = "usage_total_tokens"
    requires = Needs.TOKENS_OUT


class TotalUsagePromptTokens(_Total, of=UsagePromptTokens):
    """All prompt tokens."""


class TotalUsagePromptCacheReadTokens(_Total, of=UsagePromptCacheReadTokens):
    """All prompt tokens from the prefix cache."""


class TotalUsagePromptCacheWriteTokens(_Total, of=UsagePromptCacheWriteTokens):
    """All prompt tokens put into the prefix cache."""


class TotalUsagePromptCacheMissTokens(_Total, of=UsagePromptCacheMissTokens):
    """All prompt tokens that were not in the prefix cache."""


class TotalUsagePromptAudioTokens(_Total, of=UsagePromptAudioTokens):
    """All tokens of sound in prompts."""


class TotalUsageToolUsePromptTokens(_Total, of=UsageToolUsePromptTokens):
    """All prompt tokens of tools' results."""


class TotalUsagePromptAudioSeconds(_Total, of=UsagePromptAudioSeconds):
    """Length of all sound in prompts."""


class TotalUsageCompletionTokens(_Total, of=UsageCompletionTokens):
    """All tokens of answers."""


class TotalUsageReasoningTokens(_Total, of=UsageReasoningTokens):
    """All tokens of reasoning."""


class TotalUsageCompletionAudioTokens(_Total, of=UsageCompletionAudioTokens):
    """All tokens of sound in answers."""


class TotalUsageAcceptedPredictionTokens(_Total, of=UsageAcceptedPredictionTokens):
    """All predicted tokens that answers took over."""


class TotalUsageRejectedPredictionTokens(_Total, of=UsageRejectedPredictionTokens):
    """All predicted tokens that answers didn't take over."""


class TotalUsageTotalTokens(_Total, of=UsageTotalTokens):
    """All tokens, as the server adds them up."""


class OverallUsagePromptCacheReadPct(RunMetric):
    """Share of all prompt tokens that came from the prefix cache."""

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
    """How far the server's count is from the client's, in percent of the latter; absent where that is zero."""

    unit = Unit.PERCENT

    def column(self, batch: RecordBatch) -> Column:
        said, counted = (batch[need] for need in self.needs)
        far = np.abs(said - counted) * 100
        share: Column = np.divide(far, counted, out=np.full(len(batch), np.nan), where=counted > 0)
        return share


class UsagePromptTokensDifference(_Difference):
    """How far the server's prompt tokens are from the input tokens counted here, in percent of those."""

    tag = "usage_prompt_tokens_diff_pct"
    title = "Usage Prompt Diff %"
    needs = ("usage_prompt_tokens", "input_sequence_length")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_IN


class UsageCompletionTokensDifference(_Difference):
    """How far the server's completion tokens are from the output tokens counted here, in percent of those."""

    tag = "usage_completion_tokens_diff_pct"
    title = "Usage Completion Diff %"
    needs = ("usage_completion_tokens", "output_sequence_length")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_OUT


class UsageReasoningTokensDifference(_Difference):
    """How far the server's reasoning tokens are from those counted here, in percent of those."""

    tag = "usage_reasoning_tokens_diff_pct"
    title = "Usage Reasoning Diff %"
    needs = ("usage_reasoning_tokens", "reasoning_token_count")
    requires = Needs.CLIENT_TOKENS | Needs.TOKENS_OUT


class UsageDiscrepancyCount(Metric):
    """Requests of which the server counts prompt, answer or reasoning far from what is counted here.

    ``AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD`` (10 %) says what is far.  Absent where prompt or answer can't be compared.
    """

    tag = "usage_discrepancy_count"
    title = "Usage Discrepancy Count"
    unit = Unit.REQUESTS
    fold = Fold.SUM
    per_record = False
    needs = ("usage_prompt_tokens_diff_pct", "usage_completion_tokens_diff_pct", "usage_reasoning_tokens_diff_pct")
    requires = Needs.CLIENT_TOKENS

    def __init__(self) -> None:
        self.limit_pct = number("AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD", 0, 1e9, 10)

    def column(self, batch: RecordBatch) -> Column:
        prompt, completion, reasoning = (batch[need] for need in self.needs)
        far = np.fmax(np.maximum(prompt, completion), np.where(np.isnan(prompt + completion), np.nan, reasoning))
        return np.where(np.isnan(far), np.nan, (far > self.limit_pct).astype(np.float64))
