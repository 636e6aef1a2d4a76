"""The contract of the category with material for this verdict."""

from __future__ import annotations

from aiperf import Result
from aiperf.sdk.verdict import AnswerCounts
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_advice import Advice

_TTFT = Result("time_to_first_token", "Time to First Token", "ms", {"avg": 10.0, "p50": 10.0, "count": 24})


class AdviceContract(VerdictContract):
    """Runs with one flaw each, and one without."""

    verdict = Advice
    cases = (
        (sample_evidence(_TTFT), ()),
        (sample_evidence(_TTFT, opening_ns=(9e8,) * 8), ("cold_server",)),
        (sample_evidence(answers=AnswerCounts(valid=24, prompt_tokens=100, cached_tokens=50)), ("warm_cache",)),
    )
