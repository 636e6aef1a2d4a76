"""The server's token counts beside those made here: lengths of answers, and prompts.

A count of 0 is none.  The limits are those of the metrics ``osl_mismatch_count`` and ``usage_discrepancy_count``.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.environment import number


@cache
def _limits() -> tuple[float, float, float]:
    """The limits of a length: its share, and tokens; of a prompt: its share."""
    share = number("AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD", 0, 1e9, 5) / 100
    tokens = number("AIPERF_METRICS_OSL_MISMATCH_MAX_TOKEN_THRESHOLD", 0, 1e9, 50)
    return share, tokens, number("AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD", 0, 1e9, 10) / 100


def length_shift(batch: RecordBatch) -> int:
    """By how many the good answers of another length than was asked for are more, or fewer, by the server's counts.

    A server keeps to a length in its own tokens; the text that is tokenized again here has others.
    """
    output, reasoning = batch["output_tokens"], batch["reasoning_tokens"]
    ours = np.where(np.isnan(output) & np.isnan(reasoning), np.nan, np.nan_to_num(output) + np.nan_to_num(reasoning))
    theirs, asked = batch["usage_completion_tokens"], batch["requested_tokens"]
    share, tokens, _ = _limits()
    limit, both = np.minimum(asked * share, tokens), batch.valid & (theirs > 0) & ~np.isnan(ours)
    return int((both & (np.abs(theirs - asked) > limit)).sum()) - int((both & (np.abs(ours - asked) > limit)).sum())


def far_prompts(batch: RecordBatch) -> int:
    """The good answers whose prompts have far more, or fewer, tokens by the server's counts."""
    theirs, ours = batch["usage_prompt_tokens"], batch["input_tokens"]
    return int((batch.valid & (theirs > 0) & (ours > 0) & (np.abs(theirs - ours) > _limits()[2] * ours)).sum())
