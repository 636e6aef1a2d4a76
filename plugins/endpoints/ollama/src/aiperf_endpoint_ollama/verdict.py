"""What may mislead in a run against Ollama: a model that was loaded first, and prompts that were cut without a word."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.verdict import CERTAIN, LIKELY

COLD_MS = 1000.0
"""A model was cold where loading it took longer."""


class OllamaVerdict(Verdict[None]):
    """A cold model, and prompts that the server counts with fewer tokens than were sent."""

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        results = evidence.summary.results
        load, truncated = results.get("server_timing_load_duration"), results.get("truncated_prompt_count")
        longest = None if load is None else load.stats.get("max")
        if longest is not None and longest > COLD_MS:
            sentence = (
                f"the model was cold: the server took up to {longest / 1000:.3g} s to load it before an answer, which is part"
                " of the latencies; add --warmup-request-count, and keep it loaded with --extra-inputs keep_alive:10m"
            )
            yield Finding("cold_model", FindingLevel.ADVICE, sentence, CERTAIN, {"load_max_ms": longest})
        count = 0.0 if truncated is None else truncated.stats["avg"]
        if count:
            requests = "1 request" if count == 1 else f"{count:,.0f} requests"
            sentence = (
                f"of {requests} the server counts fewer prompt tokens than were sent: it cuts prompts to its context without a"
                " word, and the numbers are those of shorter prompts; raise it with --extra-inputs num_ctx:N (or --tokenizer is"
                " not the model's)"
            )
            yield Finding("truncated_prompts", FindingLevel.ADVICE, sentence, LIKELY, {"requests": count})
