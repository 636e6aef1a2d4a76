"""What the lanes did, from what the drivers of all workers told: a table for people, and one of each tree for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from aiperf import Evidence
from aiperf.sdk.table import Cell, SummaryTable, TableColumn, Tables, WhenShown

from aiperf_driver_agentic.tree import Fate

_NS_PER_S = 1e9
_TOTALS = (TableColumn("quantity"), TableColumn("unit"), TableColumn("value"))
_UNSENT = (Fate.TRUNCATED, Fate.RELEASED, Fate.FAILED, Fate.OVERFLOWED)
_WORDS = {
    Fate.TRUNCATED: "the end of the phase came before",
    Fate.RELEASED: "their parent had ended",
    Fate.FAILED: "a request had failed",
    Fate.OVERFLOWED: "a request was longer than the context",
}
_TREES = (
    TableColumn("session"), TableColumn("lane"), TableColumn("lap"), TableColumn("entry"), TableColumn("cut"),
    TableColumn("ended"), *(TableColumn(fate) for fate in _UNSENT),
)  # fmt: skip


class LaneTables(Tables[None]):
    """Two tables of the profiling phase; none where nothing went in lanes.

    lanes: totals.  lane_trees: a row a tree, never shown.  cut: where the tree was cut, as a share of its time; None where it
    began anew.  ended: None where nobody told, as behind a kill.  Under each fate: conversations that left turns unsent for it.
    """

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable]:
        own = evidence.phase.index
        begun = {one["session"]: one for one in evidence.told if one.get("event") == "tree"}
        ends = {one["session"]: one for one in evidence.told if one.get("event") == "tree_end" and one["phase"] == own}
        earlier = {one["session"] for one in evidence.told if one.get("event") == "tree_end" and one["phase"] != own}
        lanes = [one for one in evidence.told if one.get("event") == "lanes" and one["phase"] == own]
        trees = [one for number, one in begun.items() if one["phase"] == own or number in ends or number not in earlier]
        if not trees:
            return
        fates = {number: Counter(why for _, _, why in one["fates"]) for number, one in ends.items()}
        silent = evidence.plan.run.workers - len(lanes)
        yield SummaryTable("lanes", "Lanes", _TOTALS, tuple(_totals(trees, fates, lanes)), tuple(_silence(silent)))
        yield SummaryTable(
            "lane_trees", "Trees of the Lanes", _TREES, tuple(_row(one, fates) for one in trees), shown=WhenShown.NEVER
        )


def _totals(
    trees: list[dict[str, Any]], fates: dict[int, Counter[str]], lanes: list[dict[str, Any]]
) -> Iterator[tuple[Cell, ...]]:
    yield "lanes", "", len({one["lane"] for one in trees})
    yield "trees", "", len(trees)
    yield "trees that began in the middle of their record", "", sum(one["cut"] is not None for one in trees)
    yield "trees that ended", "", sum(one["recycled"] for one in lanes)
    yield "requests longer than the context", "", sum(one["overflows"] for one in lanes)
    for fate in _UNSENT:
        count = sum(found[fate] for found in fates.values())
        yield f"conversations with unsent turns: {_WORDS[fate]}", "", count
    # Each worker moves its own lanes' times by the system's cap, all by the same.
    for cap, over in (("trace", sum), ("system", max)):
        yield f"idle gaps shortened by the cap of the {cap}", "", over([one["shifts"][cap] for one in lanes] or [0])
        yield f"time skipped by the cap of the {cap}", "s", over([one["skipped_ns"][cap] for one in lanes] or [0]) / _NS_PER_S


def _silence(workers: int) -> Iterator[str]:
    if workers > 0:
        who = "One worker has" if workers == 1 else f"{workers} workers have"
        yield f"{who} told no end of the phase: what became of its trees is not known, and is not in these numbers."


def _row(tree: dict[str, Any], fates: dict[int, Counter[str]]) -> tuple[Cell, ...]:
    found, cut = fates.get(tree["session"]), tree["cut"]
    ended = None if found is None else not found[Fate.TRUNCATED]
    counts = [None if found is None else found[fate] for fate in _UNSENT]
    return tree["session"], tree["lane"], tree["lap"], tree["entry"], None if cut is None else cut[0], ended, *counts


__all__ = ["LaneTables"]
