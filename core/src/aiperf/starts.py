"""Sessions of a phase, from the schedule that starts them to files that workers map.

``due-<phase>.bin``       per arrival, when it is due: ns after the phase's start; -1 where only the answers will tell
``sessions-<phase>.bin``  per session: its entry, its turns, and the number of its first arrival

Integers are little-endian int64.  Sessions stand in the order in which they start, and number their arrivals one behind the
other.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from aiperf import intfile
from aiperf.draws import BLOCK
from aiperf.errors import PluginError
from aiperf.plan import PhasePlan, Plan
from aiperf.schedule import Sampler, SessionSchedule, SessionStarts
from aiperf.store import Store
from aiperf.strangers import blamed

if TYPE_CHECKING:
    from aiperf.columns import Ints


class PhaseConversations:
    """What a schedule may know of the stored data set: the entries of its phase, numbered from 0."""

    def __init__(self, phase: PhasePlan, store: Store, sampler: Sampler, seed: int) -> None:
        self.count = phase.entries
        self._first, self._store, self._sampler, self._seed = phase.first_entry, store, sampler, seed

    def entry(self, session: int) -> int:
        return self._sampler(self._seed, session, self.count)

    def turns(self, entry: int) -> int:
        return self._store.turns(self._first + entry)

    def timestamp_ns(self, entry: int, turn: int) -> int:
        return self._store.timestamp_ns(self._first + entry, turn)


def with_sessions(plan: Plan, phase: PhasePlan, data: PhaseConversations, schedule: SessionSchedule, maker: str) -> PhasePlan:
    """The phase with its due file and its sessions' file.

    A request count takes the arrivals that are due first where answers are on time, so that it is known beforehand which turns
    of which sessions are made.  Under a duration nothing is planned that can't be due before its end; how many of the turns
    that wait for answers will make it depends on those, and then *planned* is None.

    Raises:
        PluginError: The schedule breaks its contract.
    """
    found = _collected(schedule, maker, phase, data)
    first = np.cumsum(found.turns) - found.turns
    session = np.repeat(np.arange(len(first)), found.turns)
    turn = np.arange(len(session)) - first[session]
    due_ns, expected_ns = _times(schedule, found, data, first, turn)
    kept = np.ones(len(session), dtype=bool)
    if phase.duration_ns is not None:
        kept &= expected_ns < phase.duration_ns
    if phase.request_count is not None:
        # Stable, so that of those due together the earlier sessions', and of a session's the earlier turns, go first.
        beyond = np.argsort(np.where(kept, expected_ns, np.iinfo(np.int64).max), kind="stable")[phase.request_count :]
        kept[beyond] = False
    turns = np.bincount(session[kept], minlength=len(first))
    used, due_ns = turns > 0, due_ns[kept]
    turns = turns[used]
    rows = np.stack([phase.first_entry + found.entry[used], turns, np.cumsum(turns) - turns], axis=1)
    answers_decide = phase.duration_ns is not None and bool((due_ns < 0).any())
    return replace(
        phase,
        planned=None if answers_decide else len(due_ns),
        due_file=_written(plan, f"due-{phase.index}.bin", due_ns),
        sessions_file=_written(plan, f"sessions-{phase.index}.bin", rows),
        spacing_ns=schedule.spacing_ns,
        zero_ns=schedule.zero_ns,
    )


def _times(
    schedule: SessionSchedule, found: SessionStarts, data: PhaseConversations, first: Ints, turn: Ints
) -> tuple[Ints, Ints]:
    """Per arrival: when it is due, -1 where only the answers will tell; and when at the earliest it can be."""
    due_ns = np.full(len(turn), -1, dtype=np.int64)
    due_ns[first] = found.due_ns
    expected_ns = np.repeat(found.due_ns, found.turns)
    if schedule.spacing_ns is not None:
        return due_ns, expected_ns + turn * schedule.spacing_ns
    for at, entry, turns in zip(first.tolist(), found.entry.tolist(), found.turns.tolist(), strict=True):
        for later in range(1, turns):
            recorded_ns = data.timestamp_ns(entry, later)
            if recorded_ns >= 0:
                due_ns[at + later] = max(0, recorded_ns - schedule.zero_ns)
            expected_ns[at + later] = max(expected_ns[at + later - 1], due_ns[at + later])
    return due_ns, expected_ns


def _collected(schedule: SessionSchedule, maker: str, phase: PhasePlan, data: PhaseConversations) -> SessionStarts:
    """All sessions that can have a part in the phase: as many as may start, as many as its requests need, before its end."""
    counts = [count for count in (phase.session_count, phase.request_count) if count is not None]
    most = min(counts, default=math.inf)
    end_ns = math.inf if phase.duration_ns is None else phase.duration_ns
    found = SessionStarts(*(np.empty(0, dtype=np.int64) for _ in range(3)))
    while (have := len(found.due_ns)) < most:
        count = int(min(BLOCK, most - have))
        block = _drawn(schedule, maker, have, count, data, int(found.due_ns[-1]) if have else 0)
        found = SessionStarts(*(np.concatenate(pair) for pair in zip(_columns(found), _columns(block), strict=True)))
        if len(block.due_ns) < count or block.due_ns[-1] >= end_ns or _enough(found, schedule.spacing_ns, phase.request_count):
            break
    return found


def _enough(found: SessionStarts, spacing_ns: int | None, requests: int | None) -> bool:
    """Whether that many arrivals are due before any session that is still to come."""
    if spacing_ns is None or requests is None:
        return False
    behind = np.minimum(found.turns, -(-(found.due_ns[-1] - found.due_ns) // max(1, spacing_ns)))
    return int(behind.sum()) >= requests


def _drawn(
    schedule: SessionSchedule, maker: str, first: int, count: int, data: PhaseConversations, last_ns: int
) -> SessionStarts:
    """A block of the schedule, held to its contract."""
    with blamed(maker, f"failed at session {first}"):
        given = schedule.starts(first, count)
        found = SessionStarts(*(np.asarray(column) for column in _columns(given)))
    columns = _columns(found)
    shapes = {(column.dtype, column.shape) for column in columns}
    if shapes != {(np.dtype(np.int64), (len(found.due_ns),))} or len(found.due_ns) > count:
        said = ", ".join(f"{column.dtype} of shape {column.shape}" for column in columns)
        raise PluginError(f"{maker} gave {said} for {count} sessions; they are int64, one each")
    if len(found.due_ns) and (found.due_ns[0] < last_ns or (np.diff(found.due_ns) < 0).any()):
        raise PluginError(f"{maker} gave sessions that go back in time, at or after session {first}")
    for n, (entry, turns) in enumerate(zip(found.entry.tolist(), found.turns.tolist(), strict=True), first):
        if not 0 <= entry < data.count:
            raise PluginError(f"{maker} gave session {n} the entry {entry}, and the phase has {data.count}")
        if not 1 <= turns <= data.turns(entry):
            raise PluginError(f"{maker} gave session {n} {turns} turns, and its conversation has {data.turns(entry)}")
    return found


def _columns(starts: SessionStarts) -> tuple[Ints, Ints, Ints]:
    return starts.due_ns, starts.entry, starts.turns


def _written(plan: Plan, name: str, numbers: Ints) -> str:
    return intfile.write(Path(plan.journal) / name, numbers)
