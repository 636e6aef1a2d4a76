"""Ledger rows of planned arrivals that were never sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from aiperf.registry.third_party import isolated
from aiperf.report.trust import planned
from aiperf.rundir import journal
from aiperf.rundir.artifacts import exporters, part_path, target_for
from aiperf.rundir.directory import RunClock
from aiperf.rundir.store import Store, read_ints
from aiperf.sdk.columns import GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, TEXTS, Column, Floats, Ints, RecordBatch, ragged
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.statistics.fold import Merged

_BATCH = 4096


def due_times(phase: PhasePlan, directory: Path) -> Ints:
    """When arrivals are due, in ns after the phase's start: -1 where the schedule doesn't say; empty where nothing is due."""
    if phase.due_file is None:
        return np.empty(0, dtype=np.int64)
    return read_ints(directory / Path(phase.due_file).name)


def write_never_sent(
    plan: Plan, clock: RunClock, directory: Path, phase: PhasePlan, sent: Merged | None, begin_ns: float | None,
    report: Callable[[str], None],
) -> None:  # fmt: skip
    """Hand the phase's arrivals that nobody sent to the batch exporters, as a part behind those of the reducers.

    *sent*: numbers of the arrivals that were sent.  *begin_ns*: None where the phase never began: its arrivals have no due
    times then.  *report*: gets a sentence on each exporter that fails.
    """
    count = planned(phase)
    if count is None:
        return
    claimed = np.zeros(count, dtype=bool)
    if sent is not None:
        numbers = sent.values().astype(np.int64)
        claimed[numbers[numbers < count]] = True
    missing = np.flatnonzero(~claimed)
    due = np.full(count, np.nan)
    if phase.due_file is not None and begin_ns is not None:
        after = due_times(phase, directory)
        due[after >= 0] = after[after >= 0] + begin_ns
    for ref, exporter in exporters(plan, target_for(plan, clock), BatchExporter) if len(missing) else ():
        path = part_path(directory, ref.name, plan.run.reducers)
        with isolated(ref, report, passing=OSError), path.open("ab") as part:
            for at in range(0, len(missing), _BATCH):
                rows = missing[at : at + _BATCH]
                part.write(exporter.rows(_unsent(rows, due[rows], phase, directory)))


def _unsent(numbers: Ints, due: Floats, phase: PhasePlan, directory: Path) -> RecordBatch:
    """Arrivals with nothing known but number, due time and, where the plan fixes it, session and turn."""
    count = len(numbers)
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in (*NUMBERS, *GRADE_COLUMNS)}
    columns |= {"n": numbers.astype(np.float64), "due_ns": due, "phase": np.full(count, float(phase.index))}
    columns |= {"outcome": np.full(count, float(journal.NEVER_SENT)), **_sessions(numbers, phase, directory)}
    none: list[list[float]] = [[]] * count
    columns |= dict.fromkeys(LIST_COLUMNS, ragged(none, none))
    return RecordBatch(columns, np.zeros(count, dtype=bool), dict.fromkeys(TEXTS, [None] * count))


def _sessions(numbers: Ints, phase: PhasePlan, directory: Path) -> dict[str, Floats]:
    """Sessions and turns of arrivals, where they don't depend on the answers."""
    if phase.sessions_file is not None:
        rows = read_ints(directory / Path(phase.sessions_file).name).reshape(-1, 3)
        session = np.searchsorted(rows[:, 2], numbers, side="right") - 1
        turn, entry = numbers - rows[session, 2], rows[session, 0]
        return {"session": session.astype(np.float64), "turn": turn.astype(np.float64), "entry": entry.astype(np.float64)}
    if Store(directory).max_turns == 1:
        return {"session": numbers.astype(np.float64), "turn": np.zeros(len(numbers))}
    return {}
