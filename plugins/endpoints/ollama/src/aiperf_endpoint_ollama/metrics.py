"""What Ollama says of its own time, by request, and prompts that it cut."""

from __future__ import annotations

import numpy as np
from aiperf import Aggregation, Column, Metric, Needs, RecordBatch, Unit


class _Duration(Metric):
    """A duration that the server gives; absent where it gives none."""

    unit, display, group = Unit.NANOSECONDS, Unit.MILLISECONDS, "Server Timing"
    requires = Needs.NUMBERS

    def column(self, batch: RecordBatch) -> Column:
        return batch[self.needs[0]]


class TotalDuration(_Duration):
    """The server's time for the request."""

    tag, title, order, needs = "server_timing_total_duration", "Server Total Duration", 980, ("server_total_ns",)


class LoadDuration(_Duration):
    """The server's time for loading the model."""

    tag, title, order, needs = "server_timing_load_duration", "Server Load Duration", 981, ("server_load_ns",)


class PromptEvalDuration(_Duration):
    """The server's time for the prompt."""

    tag, title, order = "server_timing_prompt_eval_duration", "Server Prompt Eval Duration", 982
    needs = ("server_prompt_eval_ns",)


class EvalDuration(_Duration):
    """The server's time for the answer's tokens."""

    tag, title, order, needs = "server_timing_eval_duration", "Server Eval Duration", 983, ("server_eval_ns",)


class TruncatedPromptCount(Metric):
    """Requests for which the server counts fewer prompt tokens than were sent; absent where one of the counts is."""

    tag, title, unit = "truncated_prompt_count", "Truncated Prompt Count", Unit.REQUESTS
    fold, per_record = Aggregation.SUM, False
    needs, requires = ("server_total_ns",), Needs.NUMBERS | Needs.TOKENS_IN | Needs.CLIENT_TOKENS

    def column(self, batch: RecordBatch) -> Column:
        counted, sent = batch["usage_prompt_tokens"], batch["input_tokens"]
        return np.where(np.isnan(counted) | np.isnan(sent), np.nan, (counted < sent).astype(np.float64))
