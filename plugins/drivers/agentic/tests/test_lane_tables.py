"""Tables of what the lanes did."""

from __future__ import annotations

from aiperf import Evidence
from aiperf.testing import sample_evidence
from aiperf_driver_agentic.contract import LaneTablesContract, told
from aiperf_driver_agentic.told import LaneTables


class TestLaneTablesKeepTheContract(LaneTablesContract):
    pass


def totals(evidence: Evidence) -> dict[object, object]:
    table, _ = LaneTables(None).tables(evidence)
    return {row[0]: row[2] for row in table.rows}


def test_the_totals_are_of_all_trees() -> None:
    found = totals(sample_evidence(told=told(sample_evidence())))
    assert found == {
        "lanes": 1, "trees": 2, "trees that began in the middle of their record": 1, "trees that ended": 1,
        "requests longer than the context": 1,
        "conversations with unsent turns: the end of the phase came before": 1,
        "conversations with unsent turns: their parent had ended": 1,
        "conversations with unsent turns: a request had failed": 0,
        "conversations with unsent turns: a request was longer than the context": 1,
        "idle gaps shortened by the cap of the trace": 2, "time skipped by the cap of the trace": 3.0,
        "idle gaps shortened by the cap of the system": 1, "time skipped by the cap of the system": 0.5,
    }  # fmt: skip


def test_the_systems_cap_counts_once_for_all_workers() -> None:
    one = told(sample_evidence())
    found = totals(sample_evidence(told=(*one, one[-1])))
    assert found["idle gaps shortened by the cap of the system"] == 1
    assert found["idle gaps shortened by the cap of the trace"] == 4


def test_each_tree_has_its_lane_its_cut_and_its_fates() -> None:
    _, trees = LaneTables(None).tables(sample_evidence(told=told(sample_evidence())))
    assert trees.rows == ((0, 0, 0, 0, 0.25, True, 0, 0, 0, 1), (1, 0, 1, 0, None, False, 1, 1, 0, 0))


def test_what_a_killed_worker_did_not_tell_is_said() -> None:
    evidence = sample_evidence(told=told(sample_evidence())[:1])
    table, trees = LaneTables(None).tables(evidence)
    assert table.notes == (
        "One worker has told no end of the phase: what became of its trees is not known, and is not in these numbers.",
    )
    assert trees.rows == ((0, 0, 0, 0, 0.25, None, None, None, None, None),)


def test_a_tree_that_ended_in_warmup_is_none_of_the_phase() -> None:
    first, end, *rest = told(sample_evidence())
    warm = {**first, "phase": 7}, {**end, "phase": 7}
    assert totals(sample_evidence(told=(*warm, *rest)))["trees"] == 1
