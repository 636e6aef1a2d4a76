"""The contract of tables with what drivers of lanes told.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any

from aiperf import Evidence
from aiperf.testing import TablesContract, sample_evidence

from aiperf_driver_agentic.told import LaneTables


def told(evidence: Evidence) -> tuple[dict[str, Any], ...]:
    """Two trees of one lane in the profiling phase: the first was cut and has ended, the second is under way at the end."""
    own = evidence.phase.index
    tree = {"event": "tree", "phase": own, "entry": 0, "lane": 0, "lap": 0, "at_ns": 1}
    end = {"event": "tree_end", "phase": own, "at_ns": 2}
    shifts, skipped = {"trace": 2, "system": 1}, {"trace": 3_000_000_000, "system": 500_000_000}
    return (
        {**tree, "session": 0, "cut": [0.25, [[0, 3]]]}, {**end, "session": 0, "fates": [(1, 4, "overflowed")]},
        {**tree, "session": 1, "cut": None, "lap": 1},
        {**end, "session": 1, "fates": [(0, 2, "truncated"), (1, 6, "released")]},
        {"event": "lanes", "phase": own, "shifts": shifts, "skipped_ns": skipped, "overflows": 1, "recycled": 1},
    )  # fmt: skip


class LaneTablesContract(TablesContract):
    tables = LaneTables
    cases = ((sample_evidence(told=told(sample_evidence())), ("lanes", "lane_trees")), (sample_evidence(), ()))
