"""The contract of the category with material for this verdict."""

from __future__ import annotations

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from aiperf.sdk.verdict import AnswerCounts
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_warm_cache import WarmCache

REQUESTS = 24


def answers(cached: float, *, shared: int = 0, entries: int = REQUESTS, turns: int = 1, bodies: bool = True) -> Evidence:
    """24 prompts of 100 tokens, *cached* of each from the cache; they begin with *shared* % in common."""
    number = np.arange(REQUESTS, dtype=np.float64)
    columns = {
        "usage_prompt_tokens": np.full(REQUESTS, 100.0), "usage_cached_tokens": np.full(REQUESTS, cached),
        "usage_completion_tokens": np.full(REQUESTS, 10.0), "output_tokens": np.full(REQUESTS, 10.0),
        "reasoning_tokens": np.zeros(REQUESTS), "input_tokens": np.full(REQUESTS, 100.0), "entry": (number // turns) % entries,
        "session": number // turns, "turn": number % turns, "started_ns": number,
    }  # fmt: skip

    def column(name: str) -> Floats:
        return columns.get(name, np.zeros(REQUESTS))

    def body(entry: int) -> bytes:
        return b"s" * 4 * shared + bytes([65 + entry]) * 4 * (100 - shared) if bodies else b""

    counts = AnswerCounts(valid=REQUESTS, prompt_tokens=100 * REQUESTS, cached_tokens=round(cached * REQUESTS))
    return sample_evidence(read_column=column, read_body=body, answers=counts)


class WarmCacheContract(VerdictContract):
    """Prompts of a cache that the run did not fill, prompts that share on purpose, turns of a chat, and prompts sent twice."""

    verdict = WarmCache
    cases = (
        (answers(20), ("warm_cache",)), (answers(4), ()), (answers(20, shared=20), ()),
        (answers(50, shared=20), ("warm_cache",)), (answers(100, turns=REQUESTS), ()),
        (answers(90, entries=6), ("warm_cache", "repeated_prompts")),
        (answers(20, bodies=False), ("warm_cache",)), (sample_evidence(), ()),
    )  # fmt: skip
