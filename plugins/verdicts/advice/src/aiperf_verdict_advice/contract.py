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
        (sample_evidence(answers=AnswerCounts(valid=24, hidden_reasoning=7)), ("hidden_reasoning",)),
        (sample_evidence(models=(("llama", "qwen"),)), ("other_model",)),
    )
