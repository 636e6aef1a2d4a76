"""The scenario ``inferencex-agentx-mvp``: recorded coding agents, replayed in lanes by the rules of InferenceX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiperf import Evidence, Plan
from aiperf.sdk.scenario import AskedSettings, BenchmarkScenario, Conflict, Filling, ScenarioVerdict

from aiperf_scenario_agentx.locks import LOCKS, ignores_end, in_lanes
from aiperf_scenario_agentx.rules import AGENTIC, CACHE_BUST, NAME, SYSTEM_CAP_S, USUAL_S


class AgentX(BenchmarkScenario[None]):
    """The rules of ``inferencex-agentx-mvp`` (spec: agentic §4)."""

    title = NAME

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        filled: dict[str, Filling] = {}
        grace = asked.given("--warmup-grace-period")
        if in_lanes(asked):  # the options of lanes are refused in another mode
            filled = {
                "--scheduling-mode": AGENTIC, "--trajectory-start-min-ratio": "0", "--trajectory-start-max-ratio": "1",
                "--system-idle-gap-cap-seconds": f"{SYSTEM_CAP_S}",
            }  # fmt: skip
            if grace is not None and asked.given("--agentic-warmup-grace-period") is None:
                filled |= {"--agentic-warmup-grace-period": grace.text, "--warmup-grace-period": None}
        filled |= {"--streaming": True, "--cache-bust": CACHE_BUST, "--benchmark-duration": f"{USUAL_S}"}
        extra = asked.given("--extra-inputs")
        if extra is None or ignores_end(extra.values) is None:
            filled["--extra-inputs"] = ["ignore_eos:true"]
        return filled

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
        for lock in LOCKS:
            yield from lock(plan, asked)

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        from aiperf_scenario_agentx.verdict import verdict  # numpy: not where options are checked

        return verdict(evidence)


__all__ = ["AgentX"]
