"""The contract of scenarios: what one fills in and refuses, and how it judges made-up runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from aiperf.sdk.plan import Plan
from aiperf.sdk.scenario import (
    AskedOption,
    AskedSettings,
    BenchmarkScenario,
    Conflict,
    ScenarioVerdict,
    checked_verdict,
    joined,
)
from aiperf.sdk.table import TAKEN
from aiperf.sdk.verdict import Evidence

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row
from aiperf_testing.verdicts import evidence_of_nothing, evidence_of_trouble


def asked_for(*lists: str, **options: str | bool | Sequence[str]) -> AskedSettings:
    """What was asked for: ``asked_for(streaming=True, request_count="10")``; *lists*: options with several cells."""
    made = {}
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        texts = () if isinstance(value, bool) else (value,) if isinstance(value, str) else tuple(value)
        made[flag] = AskedOption(flag, texts, value if isinstance(value, bool) else None)
    return AskedSettings(made, lists)


class ScenarioContract:
    """Subclass with the scenario's class, plans with the flags that it refuses in them, and runs with its reasons::

        class TestMineKeepsTheContract(ScenarioContract):
            scenario = Mine
            plans = ((GOOD, asked_for(), ()), (SHORT, asked_for(benchmark_duration="5"), ("--benchmark-duration",)))
            cases = ((sample_evidence(), ()), (sample_evidence(cancelled=True), ("run_cancelled",)))

    One plan at least has nothing to refuse, and one run counts.
    """

    scenario: ClassVar[type[BenchmarkScenario[Any]]]
    plans: ClassVar[Sequence[tuple[Plan, AskedSettings, Sequence[str]]]]
    cases: ClassVar[Sequence[tuple[Evidence, Sequence[str]]]]
    options: ClassVar[Any] = None

    def _judge(self, evidence: Evidence) -> ScenarioVerdict:
        return checked_verdict(type(self).scenario(type(self).options).judge(evidence))

    def _conflicts(self, plan: Plan, asked: AskedSettings) -> list[Conflict]:
        return list(type(self).scenario(type(self).options).conflicts(plan, asked))

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("scenarios", self.scenario)

    def test_it_has_a_name_for_people(self) -> None:
        assert self.scenario.title.strip(), "give the class a title: messages and the report name the scenario by it"

    def test_it_fills_in_options_by_their_flags(self) -> None:
        self._check_filled(AskedSettings())

    def test_it_fills_in_beside_what_is_given(self) -> None:
        for _, asked, _ in self.plans:
            self._check_filled(asked)

    def _check_filled(self, asked: AskedSettings) -> None:
        for flag, value in self.scenario.fill(asked).items():
            assert flag.startswith("--"), f"fill gives {flag!r}: write the option's flag, with its dashes"
            texts = [] if value is None or isinstance(value, bool) else [value] if isinstance(value, str) else value
            assert all(isinstance(text, str) for text in texts), f"fill gives {value!r} for {flag}: write texts, as typed"

    def test_each_plan_has_its_conflicts(self) -> None:
        for plan, asked, flags in self.plans:
            found = [conflict.flag for conflict in self._conflicts(plan, asked)]
            assert found == list(flags), unlike(found, list(flags), "give the conflicts of the plan, or correct its flags")

    def test_the_plans_tell_what_is_allowed_from_what_is_not(self) -> None:
        assert {bool(flags) for _, _, flags in self.plans} == {True, False}, "a plan with conflicts and a plan without"

    def test_a_conflict_is_one_line(self) -> None:
        for plan, asked, _ in self.plans:
            for conflict in self._conflicts(plan, asked):
                sentence = conflict.sentence(self.scenario.title)
                assert sentence == " ".join(sentence.split()), f"{sentence!r} has line ends, or spaces around it"
                assert conflict.required and conflict.why, f"{conflict.flag}: say what is required, and why"

    def test_each_run_has_its_reasons(self) -> None:
        for evidence, reasons in self.cases:
            found = list(self._judge(evidence).reasons)
            assert found == list(reasons), unlike(found, list(reasons), "give the reasons of the run, or correct them")

    def test_the_runs_tell_one_that_counts_from_one_that_does_not(self) -> None:
        assert {bool(reasons) for _, reasons in self.cases} == {True, False}, "a run with a reason and a run without"

    def test_a_run_counts_where_nothing_speaks_against_it(self) -> None:
        for evidence in (*(each for each, _ in self.cases), evidence_of_nothing(), evidence_of_trouble()):
            verdict = self._judge(evidence)
            assert verdict.valid == (not verdict.reasons), "a run counts exactly where the verdict has no reasons"

    def test_its_objects_are_no_other_keys_of_the_summary(self) -> None:
        for evidence, _ in self.cases:
            verdict = self._judge(evidence)
            taken = TAKEN.intersection([*verdict.fields, *(figure.tag for figure in verdict.figures)])
            assert not taken, f"the summary has other things of the name {', '.join(sorted(taken))}: choose another"
            units = [name for name, each in verdict.fields.items() if isinstance(each, dict) and "unit" in each]
            assert not units, f"{', '.join(units)}: what has a unit is a figure"

    def test_its_notes_are_one_line_each(self) -> None:
        for evidence in (evidence_of_trouble(), *(each for each, _ in self.cases)):
            verdict = self._judge(evidence)
            for text in (*verdict.notes, verdict.fault):
                assert text == " ".join(text.split()), f"{text!r} has line ends, or spaces around it"

    def test_several_runs_can_be_told_together(self) -> None:
        verdicts = [self._judge(evidence) for evidence, _ in self.cases]
        together = joined(verdicts)
        keys = {key for verdict in verdicts for key in verdict.aggregate}
        assert set(together) == keys, f"an aggregate has the keys {sorted(together)}, its runs' verdicts {sorted(keys)}"
        assert joined([*reversed(verdicts)]).keys() == together.keys(), "runs of one aggregate may come in any order"

    def test_the_same_evidence_gives_the_same_verdict(self) -> None:
        for evidence in (evidence_of_trouble(), *(each for each, _ in self.cases)):
            before = copy.deepcopy(evidence)
            first = self._judge(evidence)
            assert first == self._judge(evidence), "the same evidence gives another verdict: no clock, no chance"
            assert evidence == before, "judge changed the evidence: others read it as well"
