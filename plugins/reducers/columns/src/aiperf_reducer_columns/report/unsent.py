"""Arrivals without a request, for the ledger: what the plan says of them; and how what wasn't sent gets to the exporters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from aiperf.parts.journal import Store, read_ints
from aiperf.parts.loading import isolated
from aiperf.parts.reporting import exporters, part_path
from aiperf.sdk.columns import GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, SITE, TEXTS, Column, Floats, Ints, RecordBatch, ragged
from aiperf.sdk.exporter import BatchExporter, Target
from aiperf.sdk.plan import PhasePlan, Plan

from aiperf_reducer_columns.statistics.fold import Merged

LEDGER_ROWS = 4096
"""Arrivals, or turns of trees, that are handed to an exporter at once."""


def due_times(phase: PhasePlan, directory: Path) -> Ints:
    """When arrivals are due, in ns after the phase's start: -1 where the schedule doesn't say; empty where nothing is due."""
    if phase.due_file is None:
        return np.empty(0, dtype=np.int64)
    return read_ints(directory / Path(phase.due_file).name)


def due_from(phase: PhasePlan, count: int, directory: Path, begin_ns: float) -> Floats:
    """When each of the first *count* arrivals is due, in ns; NaN where the schedule doesn't say, and where *begin_ns* is not
    known."""
    due = np.full(count, np.nan)
    if phase.due_file is not None:
        after = due_times(phase, directory)[:count]
        known = np.flatnonzero(after >= 0)
        due[known] = after[known] + begin_ns
    return due


def unsent_numbers(count: int | None, sent: Merged | None) -> Ints:
    """Numbers below *count* that were not *sent*; none where the count is None."""
    unsent = np.ones(count or 0, dtype=bool)
    for numbers in () if sent is None or not count else sent.blocks():
        unsent[numbers[numbers < count].astype(np.int64)] = False
    return np.flatnonzero(unsent)


def unsent_batches(
    unsent: Ints, phase: PhasePlan, directory: Path, outcome: int, begin_ns: float, sites: Sequence[str] = ()
) -> Iterator[RecordBatch]:  # fmt: skip
    """The arrivals of these numbers.  *begin_ns*: of the phase, NaN where it isn't known.  *sites*: names of the run's."""
    if len(unsent):
        due = due_from(phase, int(unsent[-1]) + 1, directory, begin_ns)
    for at in range(0, len(unsent), LEDGER_ROWS):
        rows = unsent[at : at + LEDGER_ROWS]
        yield unsent_rows(rows, due[rows], phase, directory, outcome, sites)


def write_rest(
    batches: Iterable[RecordBatch], plan: Plan, target: Target, directory: Path, report: Callable[[str], object]
) -> None:  # fmt: skip
    """Hand *batches* of what wasn't sent to the batch exporters, as a part behind those of the reducers."""
    known = exporters(plan, target, BatchExporter)
    for batch in batches:
        for ref, exporter in known:
            with isolated(ref, report, passing=OSError), part_path(directory, ref.name, plan.run.reducers).open("ab") as part:
                part.write(exporter.rows(batch))


def unsent_rows(
    numbers: Ints, due: Floats, phase: PhasePlan, directory: Path, outcome: int, sites: Sequence[str] = ()
) -> RecordBatch:  # fmt: skip
    """Arrivals with nothing known but number, due time and, where the plan fixes it, session, turn and site."""
    count = len(numbers)
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in (*NUMBERS, *GRADE_COLUMNS)}
    columns |= {"n": numbers.astype(np.float64), "due_ns": due, "phase": np.full(count, float(phase.index))}
    columns |= {"outcome": np.full(count, float(outcome)), **_sessions(numbers, phase, directory)}
    none: list[list[float]] = [[]] * count
    columns |= dict.fromkeys(LIST_COLUMNS, ragged(none, none))
    texts: dict[str, list[str | None]] = dict.fromkeys(TEXTS, [None] * count)
    if sites:
        texts[SITE] = _sites(numbers, columns.get("session"), phase, sites)
    return RecordBatch(columns, np.zeros(count, dtype=bool), texts)


def _sites(numbers: Ints, sessions: Column | None, phase: PhasePlan, sites: Sequence[str]) -> list[str | None]:
    """Whose arrivals they are: sites own those with due times, or whole sessions, in turn."""
    if phase.sessions_file is not None and isinstance(sessions, np.ndarray):
        owners: Ints = sessions.astype(np.int64)
    elif phase.due_file is not None:
        owners = numbers
    else:  # they draw what comes next
        return [None] * len(numbers)
    return [sites[owner % len(sites)] for owner in owners.tolist()]


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
