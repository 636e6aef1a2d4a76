"""Tables of plugins: what becomes of good ones, and of those that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.table import TAKEN, SummaryTable, TableColumn, Tables
from aiperf.sdk.verdict import Evidence
from aiperf_reducer_columns.report.tables import tables
from aiperf_testing.plans import sample_plan
from aiperf_testing.verdicts import sample_evidence

COLUMNS = (TableColumn("name"), TableColumn("took", "ms"))


def table(name: str, *rows: tuple[Any, ...], columns: tuple[TableColumn, ...] = COLUMNS) -> SummaryTable:
    return SummaryTable(name, "Queues", columns, rows)


class Good(Tables[None]):
    def tables(self, evidence: Evidence) -> SummaryTable:
        return table("good", ("a", 1.5), ("b", None))


class Column(Tables[None]):
    def tables(self, evidence: Evidence) -> SummaryTable:
        return table("longest", ("n", evidence.column("ended_ns").max()))


class Wrong(Tables[None]):
    def tables(self, evidence: Evidence) -> Iterator[Any]:
        yield table("early", ("a", 1))
        yield self.wrong

    wrong: Any = 7


class Ragged(Wrong):
    wrong = table("ragged", ("a", 1), ("b",))


class Twice(Wrong):
    wrong = table("twice", ("a", 1), columns=(TableColumn("a"), TableColumn("a")))


class Named(Wrong):
    wrong = table("Not A Name")


class Misspelt(Tables[None]):
    def tables(self, evidence: Evidence) -> SummaryTable:
        return table("never", ("a", len(evidence.column("ended"))))


class Tag(Wrong):
    wrong = table("request_latency")


class Key(Wrong):
    wrong = table("plugins")


class Again(Wrong):
    wrong = table("early")


def made(*plugins: type[Tables[None]]) -> tuple[list[str], list[str]]:
    refs = tuple(PluginRef("tables", each.__name__.lower(), f"{__name__}:{each.__name__}", "acme", "1.2") for each in plugins)
    said: list[str] = []
    plan = sample_plan(Path("run"), tables=refs)
    found, _ = tables(plan, sample_evidence(), {"request_latency", *TAKEN}, said.append)
    assert all(each.package == "acme 1.2" for each in found)
    return [each.name for each in found], said


def test_tables_have_the_order_of_their_plugins() -> None:
    assert made(Good, Column) == (["good", "longest"], [])


@pytest.mark.parametrize(
    ("plugin", "cause"),
    [
        (Wrong, "TypeError: tables gave int, not SummaryTable"),
        (Ragged, "row 2 of the table ragged has 1 cells for 2 columns"),
        (Twice, "two columns of one name: a, a"),
        (Named, "Expected `str` matching regex"),
        (Tag, "has a table 'request_latency', a name that the summary has already"),
        (Key, "has a table 'plugins', a name"),
        (Again, "has a table 'early', a name"),
    ],
)
def test_a_wrong_table_is_named_and_those_before_it_stay(plugin: type[Tables[None]], cause: str) -> None:
    names, (sentence,) = made(plugin, Good)
    assert names == ["early", "good"]
    assert sentence.startswith(f"the plugin tables:{plugin.__name__.lower()} of acme 1.2 ") and cause in sentence


def test_a_plugin_that_can_not_be_imported_is_left_out() -> None:
    said: list[str] = []
    refs = (PluginRef("tables", "gone", f"{__name__}:Gone", "acme", "1.2"),)
    assert tables(sample_plan(Path("run"), tables=refs), sample_evidence(), (), said.append) == ((), {})
    assert said[0].startswith("the plugin tables:gone of acme 1.2 can't be imported")
