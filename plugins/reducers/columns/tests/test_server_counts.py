"""The server's token counts beside those made here."""

from __future__ import annotations

import numpy as np
import pytest
from aiperf.sdk.columns import RecordBatch
from aiperf_reducer_columns.statistics.server_counts import far_prompts, length_shift

ABSENT = float("nan")
NAMES = (
    "output_tokens", "reasoning_tokens", "usage_completion_tokens", "requested_tokens", "usage_prompt_tokens", "input_tokens",
)  # fmt: skip


def batch(*, good: bool = True, **numbers: float) -> RecordBatch:
    return RecordBatch({name: np.array([numbers.get(name, ABSENT)]) for name in NAMES}, np.array([good]))


@pytest.mark.parametrize(
    ("ours", "theirs", "asked", "shift"),
    [
        (80, 100, 100, -1),  # exactly the asked length in its own tokens
        (100, 80, 100, 1),
        (80, 60, 100, 0),
        (100, 100, 100, 0),
        (80, 0, 100, 0),  # 0 is none
        (80, ABSENT, 100, 0),
        (80, 100, ABSENT, 0),
        (ABSENT, 80, 100, 0),
    ],
)
def test_a_length_is_judged_by_the_servers_count(ours: float, theirs: float, asked: float, shift: int) -> None:
    found = batch(output_tokens=ours, usage_completion_tokens=theirs, requested_tokens=asked)
    assert length_shift(found) == shift
    assert length_shift(batch(good=False, output_tokens=ours, usage_completion_tokens=theirs, requested_tokens=asked)) == 0


def test_reasoning_is_part_of_a_length() -> None:
    assert length_shift(batch(output_tokens=60, reasoning_tokens=40, usage_completion_tokens=100, requested_tokens=100)) == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "far"), [(100, 110, 0), (100, 111, 1), (100, 89, 1), (100, 0, 0), (100, ABSENT, 0), (0, 9, 0)]
)
def test_prompts_are_far_beyond_a_tenth(ours: float, theirs: float, far: int) -> None:
    assert far_prompts(batch(input_tokens=ours, usage_prompt_tokens=theirs)) == far
