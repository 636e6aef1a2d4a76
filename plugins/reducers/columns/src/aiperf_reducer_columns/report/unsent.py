"""Arrivals without a request, for the ledger: what the plan says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from aiperf.parts.journal import Store, read_ints
from aiperf.sdk.columns import GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, TEXTS, Column, Floats, Ints, RecordBatch, ragged
from aiperf.sdk.plan import PhasePlan


def due_times(phase: PhasePlan, directory: Path) -> Ints:
    """When arrivals are due, in ns after the phase's start: -1 where the schedule doesn't say; empty where nothing is due."""
    if phase.due_file is None:
        return np.empty(0, dtype=np.int64)
    return read_ints(directory / Path(phase.due_file).name)


def due_from(phase: PhasePlan, count: int, directory: Path, begin_ns: float) -> Floats:
    """When each of *count* arrivals is due, in ns; NaN where the schedule doesn't say, and where *begin_ns* is not known."""
    due = np.full(count, np.nan)
    if phase.due_file is not None:
        after = due_times(phase, directory)
        due[after >= 0] = after[after >= 0] + begin_ns
    return due


def unsent_rows(numbers: Ints, due: Floats, phase: PhasePlan, directory: Path, outcome: int) -> RecordBatch:
    """Arrivals with nothing known but number, due time and, where the plan fixes it, session and turn."""
    count = len(numbers)
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in (*NUMBERS, *GRADE_COLUMNS)}
    columns |= {"n": numbers.astype(np.float64), "due_ns": due, "phase": np.full(count, float(phase.index))}
    columns |= {"outcome": np.full(count, float(outcome)), **_sessions(numbers, phase, directory)}
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
