"""What the scenario of a run says of it, and where its data set came from."""

from __future__ import annotations

from typing import Any

from aiperf import Evidence, Plan
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.scenario import BenchmarkScenario, ScenarioFigure, ScenarioVerdict
from aiperf.testing import sample_evidence
from aiperf_reducer_columns.report.scenarios import provenance, ruled, source_facts


class Strict(BenchmarkScenario[None]):
    title = "strict"

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        fields = {"rules": ["be strict"], "warnings": ["mine"], "request_latency": {"unit": "ms"}}
        figure = ScenarioFigure("strictness", "Strictness", "points", 3.0)
        return ScenarioVerdict(self.title, not evidence.summary.failed, fields=fields, figures=(figure,))


class Lost(BenchmarkScenario[None]):
    title = "lost"

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        raise LookupError("no column of that name")


def of(scenario: type[BenchmarkScenario[Any]] | None, **changes: Any) -> Evidence:
    """Evidence of a run with the scenario."""
    value = "" if scenario is None else f"{__name__}:{scenario.__name__}"
    ref = None if scenario is None else PluginRef("scenarios", scenario.title, value, "acme", "1.2")
    plan: Plan = sample_evidence().plan.replacing(scenario=ref)
    return sample_evidence(plan=plan, **changes)


def test_a_verdict_stands_in_the_summary_without_names_that_are_taken() -> None:
    evidence = of(Strict)
    summary = ruled(evidence.plan, evidence)
    assert summary.scenario is not None and summary.scenario.valid
    assert summary.scenario.fields == {"rules": ["be strict"]}
    assert summary.results["strictness"].entry() == {"unit": "points", "avg": 3.0}
    (failure,) = summary.extra["failures"]
    assert "acme 1.2" in failure and "has request_latency, warnings" in failure and failure in summary.warnings


def test_a_scenario_that_fails_gives_no_verdict_and_is_named() -> None:
    evidence = of(Lost)
    summary = ruled(evidence.plan, evidence)
    assert summary.scenario is None
    (failure,) = summary.extra["failures"]
    assert "scenarios:lost" in failure and "no column of that name" in failure


def test_a_run_without_a_scenario_stays_as_it_is() -> None:
    evidence = of(None)
    assert ruled(evidence.plan, evidence) == evidence.summary


def test_provenance_stands_apart_from_the_other_facts() -> None:
    plan = sample_evidence().plan.replacing(facts={"rows_read": 3, "provenance": {"loader": "chats"}}, first=5)
    assert source_facts(plan) == {"rows_read": 3}
    assert provenance(plan) == {"loader": "chats", "num_dataset_entries": 5}
    assert provenance(plan.replacing(facts={"rows_read": 3})) == {}
