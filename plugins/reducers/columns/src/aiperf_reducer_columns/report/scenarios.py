"""What the scenario of a run says of it, and where its data set came from."""

from __future__ import annotations

from typing import Any

from aiperf.parts.loading import isolated, load
from aiperf.sdk.plan import Plan
from aiperf.sdk.scenario import BenchmarkScenario, checked_verdict
from aiperf.sdk.summary import Result, Summary
from aiperf.sdk.table import TAKEN
from aiperf.sdk.verdict import Evidence
from msgspec.structs import replace

_PROVENANCE = "provenance"
"""The fact of a data set that ``metadata.dataset`` of the summary JSON has; the others are in ``dataset``."""


def source_facts(plan: Plan) -> dict[str, Any]:
    """What the data set tells of its source, but for its provenance."""
    return {name: told for name, told in plan.data.facts.items() if name != _PROVENANCE}


def provenance(plan: Plan) -> dict[str, Any]:
    """Where a data set with a name came from; {} where it doesn't tell."""
    told: dict[str, Any] = plan.data.facts.get(_PROVENANCE) or {}
    return {**told, **({} if plan.data.first is None else {"num_dataset_entries": plan.data.first})} if told else {}


def ruled(plan: Plan, evidence: Evidence) -> Summary:
    """The summary with the verdict of the run's scenario; where that fails, with a sentence on it."""
    summary, ref = evidence.summary, plan.plugins.scenario
    taken = {*TAKEN, *summary.results, *summary.extra, *(table.name for table in summary.tables)}
    if ref is None:
        return summary
    failures: list[str] = []
    with isolated(ref, failures.append, "gives no verdict on the run"):
        scenario: BenchmarkScenario[Any] = load(ref)(plan.plugins.options_of(ref))
        verdict = checked_verdict(scenario.judge(evidence))
        if double := sorted(taken & set(verdict.fields)):
            failures.append(f"{ref} has {', '.join(double)}, which the summary has already: it is left out")
            verdict = replace(verdict, fields={name: told for name, told in verdict.fields.items() if name not in double})
        results = {each.tag: Result(each.tag, each.title, each.unit, {"avg": each.value}) for each in verdict.figures}
        summary = replace(summary, scenario=verdict, results=summary.results | results)
    more = {"failures": [*summary.extra.get("failures", []), *failures]} if failures else {}
    return replace(summary, warnings=(*summary.warnings, *failures), extra=summary.extra | more)
