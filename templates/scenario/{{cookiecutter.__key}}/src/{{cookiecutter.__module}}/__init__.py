"""The rules of {{ cookiecutter.name }}: streamed answers, a minute or more, and no failed request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiperf import Evidence, Plan
from aiperf.sdk.scenario import (
    AskedSettings,
    BenchmarkScenario,
    Conflict,
    Filling,
    ScenarioVerdict,
)

SHORTEST_S = 60


class {{ cookiecutter.__class }}(BenchmarkScenario[None]):
    """Fills in streaming and a duration; a run with a failed request doesn't count."""

    title = "{{ cookiecutter.name }}"

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        return {"--streaming": True, "--benchmark-duration": str(SHORTEST_S)}

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
        if not plan.target.streaming:
            yield Conflict(asked.flag("--no-streaming"), "", "streamed answers", "it compares times to the first token")
        duration_ns = plan.load.phases[-1].duration_ns
        if duration_ns is None or duration_ns < SHORTEST_S * 10**9:
            given = "none" if duration_ns is None else f"{duration_ns / 1e9:g}"
            why = "shorter runs are ruled by their begin and their end"
            yield Conflict(asked.flag("--benchmark-duration"), given, f"{SHORTEST_S} or more", why)

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        summary, reasons = evidence.summary, list[str]()
        if evidence.plan.run.overridden:
            reasons.append("unsafe_override")
        if summary.failed:
            reasons.append("failed_requests")
        metadata = {"scenario": self.title, "counts": not reasons, "why_not": reasons}
        return ScenarioVerdict(self.title, not reasons, tuple(reasons), metadata=metadata, aggregate=metadata)
