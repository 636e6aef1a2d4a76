"""The tables of a run: what the plugins of the category make of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from aiperf.parts.loading import isolated, left_out, load
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.errors import PluginError
from aiperf.sdk.plan import Plan
from aiperf.sdk.table import SummaryFacts, SummaryTable, checked_facts, checked_table
from aiperf.sdk.verdict import Evidence
from msgspec.structs import replace


def tables(
    plan: Plan, evidence: Evidence, taken: Collection[str], report: Callable[[str], object]
) -> tuple[tuple[SummaryTable, ...], dict[str, dict[str, Any]]]:
    """The tables of each plugin of the plan, and its facts by name.  A sentence on each plugin that fails goes to *report*.

    *taken*: names that a table can't have, as tags of metrics.
    """
    found, facts = list[SummaryTable](), dict[str, dict[str, Any]]()
    absent: list[tuple[PluginRef, PluginError]] = []
    for ref in plan.plugins.tables:
        try:
            maker = load(ref)
        except PluginError as error:
            absent.append((ref, error))
            continue
        with isolated(ref, report):
            made = maker(plan.plugins.options_of(ref)).tables(evidence)
            for table in (made,) if isinstance(made, SummaryTable) else () if made is None else made:
                one = checked_facts(table) if isinstance(table, SummaryFacts) else checked_table(table)
                if one.name in (*taken, *facts, *(each.name for each in found)):
                    report(f"{ref} has a table {one.name!r}, a name that the summary has already: the table is left out")
                elif isinstance(one, SummaryFacts):
                    facts[one.name] = one.facts
                else:
                    found.append(replace(one, plugin=ref.name, package=ref.package))
    for sentence in left_out(absent):
        report(sentence)
    return tuple(found), facts
