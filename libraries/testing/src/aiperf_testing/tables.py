"""The contract of tables: cells of a made-up run's evidence, the same each time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from aiperf.sdk.table import TAKEN, SummaryFacts, SummaryTable, Tables, checked_facts, checked_table
from aiperf.sdk.verdict import Evidence

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row
from aiperf_testing.verdicts import evidence_of_nothing, evidence_of_trouble, in_blocks


class TablesContract:
    """Subclass with the plugin's class, and evidence with the names of its tables in their order; once with none::

        class TestMineKeepsTheContract(TablesContract):
            tables = Mine
            cases = ((sample_evidence(), ("queues",)), (sample_evidence(valid=0), ()))
    """

    tables: ClassVar[type[Tables[Any]]]
    cases: ClassVar[Sequence[tuple[Evidence, Sequence[str]]]]
    options: ClassVar[Any] = None

    def _given(self, evidence: Evidence) -> list[SummaryTable | SummaryFacts]:
        made = type(self).tables(type(self).options).tables(evidence)
        given = [made] if isinstance(made, SummaryTable) else made or ()
        return [checked_facts(each) if isinstance(each, SummaryFacts) else checked_table(each) for each in given]

    def _made(self, evidence: Evidence) -> list[SummaryTable]:
        return [each for each in self._given(evidence) if isinstance(each, SummaryTable)]

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("tables", self.tables)

    def test_each_case_has_its_tables(self) -> None:
        for evidence, names in self.cases:
            made = [table.name for table in self._made(evidence)]
            assert made == list(names), unlike(made, list(names), "give the tables of the case, or correct its names")

    def test_the_cases_tell_one_run_from_another(self) -> None:
        assert {bool(names) for _, names in self.cases} == {True, False}, "a run with a table and a run without"

    def test_a_name_is_no_other_key_of_the_summary(self) -> None:
        taken = TAKEN.intersection(table.name for evidence, _ in self.cases for table in self._given(evidence))
        assert not taken, f"the summary has other things of the name {', '.join(sorted(taken))}: choose another"

    def test_titles_and_notes_are_one_line_each(self) -> None:
        for table in (each for evidence, _ in self.cases for each in self._made(evidence)):
            for text in (table.title, *table.notes):
                assert text == " ".join(text.split()), f"{text!r} has line ends, or spaces around it"

    def test_runs_without_an_answer_and_with_every_trouble_are_survived(self) -> None:
        self._made(evidence_of_nothing())
        self._made(evidence_of_trouble())

    def test_the_same_evidence_gives_the_same_tables(self) -> None:
        for evidence in (evidence_of_trouble(), *(each for each, _ in self.cases)):
            assert self._given(evidence) == self._given(evidence), "the same evidence gives other tables: no clock, no chance"

    def test_columns_in_short_blocks_give_the_same_tables(self) -> None:
        for evidence, _ in self.cases:
            assert self._given(in_blocks(evidence)) == self._given(evidence), (
                "evidence.columns and evidence.ordered give blocks of any length, or none: tables must not depend on it"
            )

    def test_without_series_no_queue_is_known(self) -> None:
        assert type(self).tables.queued(()) is None, "no series tells of a queue: give None"

    def test_the_evidence_stays_as_it_is(self) -> None:
        evidence = evidence_of_trouble()
        before = copy.deepcopy(evidence)
        self._made(evidence)
        assert evidence == before, "tables changed the evidence: others read it as well"
