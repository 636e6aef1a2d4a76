"""The rules of a benchmark whose trees are those of a clan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiperf import Evidence, Plan
from aiperf.sdk.scenario import AskedSettings, BenchmarkScenario, Conflict, Filling, ScenarioFigure, ScenarioVerdict


class Potluck(BenchmarkScenario[None]):
    """Fills in the data set, the load and a field of every body; a run with a failed request doesn't count."""

    title = "Potluck"

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        return {
            "--custom-dataset-type": "clan", "--concurrency": "2", "--num-sessions": "4", "--streaming": True,
            "--extra-inputs": ["dish:soup"],
        }  # fmt: skip

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
        if plan.load.phases[-1].concurrency != 2:
            level = asked.given("--concurrency")
            yield Conflict(asked.flag("--concurrency"), level.text if level else "", "2", "the table has two ends")
        if plan.data.sampling == "random":
            flag = asked.flag("--dataset-sampling-strategy")
            yield Conflict(flag, "random", "any other order", "everybody brings one dish", final=True)
        if asked.lists:
            yield Conflict(asked.lists[0], "with several values", "one value", "there is one evening")

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        summary = evidence.summary
        reasons = [*(["other_rules"] if evidence.plan.run.overridden else []), *(["hungry"] if summary.failed else [])]
        metadata = {"scenario": self.title, "everybody_ate": not reasons, "complaints": reasons}
        notes = (f"{summary.valid} dishes were served",)
        fault = "somebody is hungry" if summary.failed else ""
        served = ScenarioFigure("dishes", "Dishes", "dishes", summary.valid)
        return ScenarioVerdict(
            self.title, not reasons, tuple(reasons), notes, metadata, fault=fault, aggregate=metadata, figures=(served,)
        )
