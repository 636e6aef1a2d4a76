"""Turns of trees in the ledger: each that was not sent has a line, by what the driver told and the journal has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf import BatchExporter, RecordBatch
from aiperf.rundir import journal
from aiperf.sdk.model import Conversation, Turn
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Branch, TreeBuilder
from aiperf_reducer_columns.report.report import report
from aiperf_testing.journals import Recording, event
from aiperf_testing.plans import sample_ref
from msgspec.structs import replace

COMMON: dict[str, Any] = {"schedule": "agentic_replay", "concurrency": 1, "entries": 1}
PHASES = (
    PhasePlan("warmup", "warmup", 0, lives_on=True, **COMMON),
    PhasePlan("profiling", "profiling", 1, duration_ns=10**9, **COMMON),
)
WARMUP, MAIN = 0, 1
S = 10**9


class Turns(BatchExporter):
    """Phase, session, stream, turn, outcome and name of the conversation of each row."""

    label, kind = "Turns", "turns.txt"

    def rows(self, batch: RecordBatch) -> bytes:
        if "stream" not in batch.columns:  # arrivals that were never sent
            return b""
        shown = [batch[name].astype(int).tolist() for name in ("phase", "session", "stream", "turn", "outcome")]
        names = batch.texts["conversation_id"]
        return b"".join(json.dumps(row).encode() + b"\n" for row in zip(*shown, names, strict=True))


def tree() -> Conversation:
    """A root of three turns, and a child of two behind the first."""
    builder = TreeBuilder()
    builder.stream("root", 3)
    builder.stream("child", 2)
    builder.branch(0, Branch((1,), 0, 2))
    return Conversation("root", tuple(Turn((f"turn {at}",)) for at in range(5)), streams=builder.streams())


class Made(Recording):
    count = 0


def recording(path: Path, phases: Sequence[PhasePlan] = PHASES, **facts: Any) -> Made:
    ref = sample_ref("exporters", f"{__name__}:Turns")
    made = Made(path, phases=tuple(phases), exporters=(ref,))
    made.plan = replace(made.plan, plugins=replace(made.plan.plugins, facts={"drivers:burst": facts}))
    made.data_set(tree())
    journal.save_run(made.journal, made.plan, journal.load_run(made.journal)[1])
    made.phase("begin", 0, phase=WARMUP)
    return made


def begins(made: Made, session: int, ahead: Sequence[tuple[int, int]], phase: int = WARMUP) -> None:
    value = {"event": "tree", "phase": phase, "session": session, "entry": 0, "ahead": ahead, "lane": 0, "more": "of a driver"}
    made.event(journal.NODES, value, 1)


def ends(made: Made, session: int, fates: Sequence[tuple[int, int, str]], phase: int = MAIN) -> None:
    made.event(journal.NODES, {"event": "tree_end", "phase": phase, "session": session, "fates": fates}, 2)


def sends(made: Made, session: int, *places: int, phase: int = MAIN) -> None:
    for place in places:
        made.answered(made.count, 10, (20, event(text="Hi")), phase=phase, session=session, turn=place)
        made.count += 1


def over(made: Made, *, noted: bool = True) -> list[Any]:
    """The report's rows of turns without requests."""
    made.flush(S)
    if noted:
        made.phase("end", S, phase=MAIN)
        made.ended(requests={})
    summary = report(made.directory)[0]
    rows = [json.loads(line) for part in sorted(made.journal.glob("part-*")) for line in part.read_text().splitlines()]
    unsent = [(*row[:4], row[5], journal.OUTCOMES[row[4]]) for row in rows if row[4] in (9, 10, journal.UNKNOWN)]
    told = summary.measurement.arrivals
    main = [row[-1] for row in unsent if row[0] == MAIN]
    assert (told.truncated, told.released, told.unknown) == tuple(map(main.count, ("truncated", "released", "unknown")))
    assert told.planned == told.sent + told.unknown
    return unsent


def test_turns_that_were_not_sent_stand_with_their_fates(tmp_path: Path) -> None:
    made = recording(tmp_path)
    begins(made, 0, [(0, 1), (1, 3)])  # the root goes on behind its first turn
    sends(made, 0, 1, phase=WARMUP)
    made.phase("begin", 5, phase=MAIN)
    sends(made, 0, 3)
    ends(made, 0, [(0, 2, "truncated"), (1, 4, "overflowed")])
    assert over(made) == [(MAIN, 0, 0, 2, "root", "truncated"), (MAIN, 0, 1, 1, "child", "released")]


@pytest.mark.parametrize(("noted", "outcome"), [(True, "truncated"), (False, "unknown")])
def test_a_tree_without_an_end_has_what_was_not_seen(tmp_path: Path, noted: bool, outcome: str) -> None:
    made = recording(tmp_path)
    begins(made, 0, [(0, 0), (1, 3)])
    sends(made, 0, 0, phase=WARMUP)
    made.phase("begin", 5, phase=MAIN)
    sends(made, 0, 1, 3)
    rest = [(MAIN, 0, 0, 2, "root", outcome), (MAIN, 0, 1, 1, "child", outcome)]
    assert over(made, noted=noted) == rest


def test_a_tree_that_ended_in_warmup_stands_there(tmp_path: Path) -> None:
    made = recording(tmp_path)
    begins(made, 0, [(0, 0), (1, 3)])
    sends(made, 0, 0, 1, 2, 3, phase=WARMUP)
    ends(made, 0, [(1, 4, "failed")], WARMUP)
    made.phase("begin", 5, phase=MAIN)
    begins(made, 1, [(0, 0), (1, 3)], MAIN)
    sends(made, 1, 0, 1, 2, 3, 4)
    ends(made, 1, [])
    assert over(made) == [(WARMUP, 0, 1, 1, "child", "released")]


@pytest.mark.parametrize("limits", [{"duration_ns": 10**9}, {"request_count": 9}, {"session_count": 2}])
@pytest.mark.parametrize("trees", [True, False])
def test_a_driver_of_whole_trees_tells_of_their_ends_alone(tmp_path: Path, trees: bool, limits: dict[str, Any]) -> None:
    warmup = PhasePlan("warmup", "warmup", 0, "burst", duration_ns=1)
    made = recording(tmp_path, (warmup, PhasePlan("profiling", "profiling", 1, "burst", **limits)), trees=trees)
    sends(made, 0, 0, 1, phase=WARMUP)
    made.phase("begin", 5, phase=MAIN)
    sends(made, 0, 0, 1, 2, 3, 4)
    sends(made, 1, 0, 3)
    sends(made, 2, 0, 3)
    ends(made, 1, [(0, 1, "truncated"), (1, 4, "failed")])
    made.phase("end", S, phase=WARMUP)
    made.flush(S)
    made.phase("end", S, phase=MAIN)
    made.ended(requests={})
    report(made.directory)
    rows = [json.loads(line) for part in sorted(made.journal.glob("part-*")) for line in part.read_text().splitlines()]
    unsent = [(*row[:4], journal.OUTCOMES[row[4]]) for row in rows if row[4] in (journal.TRUNCATED, journal.RELEASED)]
    found = {phase: [row[1:] for row in unsent if row[0] == phase] for phase in (WARMUP, MAIN)}
    cut = [(0, 0, 2, "truncated"), (0, 1, 0, "truncated"), (0, 1, 1, "truncated")]
    assert found[WARMUP] == (cut if trees else [])
    one = [(1, 0, 1, "truncated"), (1, 0, 2, "truncated"), (1, 1, 1, "released")]
    other = [(2, 0, 1, "truncated"), (2, 0, 2, "truncated"), (2, 1, 1, "truncated")]
    assert found[MAIN] == (one + other if trees and "session_count" not in limits else [])


def test_what_a_driver_tells_otherwise_is_left_out(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.phase("begin", 5, phase=MAIN)
    made.event(journal.NODES, {"event": "tree", "phase": MAIN, "lane": "first"}, 1)
    begins(made, 3, [(0, 0), (9, 9)], phase=7)
    begins(made, 1, [(9, 0)], MAIN)
    sends(made, 1, 0)
    assert over(made) == []
