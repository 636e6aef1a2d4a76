"""The due file and the sessions' file of a schedule that starts sessions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import astuple, replace

from aiperf.errors import PluginError
from aiperf.registry.third_party import blamed
from aiperf.rundir.int_files import write_ints
from aiperf.sdk.columns import Ints
from aiperf.sdk.draws import BLOCK
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.schedule import SessionSchedule, SessionStarts

if TYPE_CHECKING:
    from aiperf.prepare.due_times import PhaseConversations


def with_sessions(plan: Plan, phase: PhasePlan, data: PhaseConversations, schedule: SessionSchedule, maker: str) -> PhasePlan:
    """The phase with its due file and its sessions' file.

    A request count selects the arrivals that are due first if answers are on time, so the turns of each session are known
    before the run.  A duration excludes turns that can't be due before its end.  Where live answers decide how many turns
    fit into the duration, *planned* is None.

    Raises:
        PluginError: The schedule breaks its contract.
    """
    starts = _collected(schedule, maker, phase, data)
    first = np.cumsum(starts.turns) - starts.turns
    session = np.repeat(np.arange(len(first)), starts.turns)
    turn = np.arange(len(session)) - first[session]
    due_ns, expected_ns = _times(schedule, starts, data, first, turn)
    selected = np.ones(len(session), dtype=bool)
    if phase.duration_ns is not None:
        selected &= expected_ns < phase.duration_ns
    if phase.request_count is not None:
        # The sort is stable: of arrivals due together, earlier sessions and earlier turns go first.
        order = np.argsort(np.where(selected, expected_ns, np.iinfo(np.int64).max), kind="stable")
        selected[order[phase.request_count :]] = False
    turns = np.bincount(session[selected], minlength=len(first))
    used, due_ns = turns > 0, due_ns[selected]
    turns = turns[used]
    rows = np.stack([phase.first_entry + starts.entry[used], turns, np.cumsum(turns) - turns], axis=1)
    journal = Path(plan.output.journal)
    answers_decide = phase.duration_ns is not None and bool((due_ns < 0).any())
    return replace(
        phase, planned=None if answers_decide else len(due_ns), spacing_ns=schedule.spacing_ns, zero_ns=schedule.zero_ns,
        due_file=write_ints(journal / f"due-{phase.index}.bin", due_ns),
        sessions_file=write_ints(journal / f"sessions-{phase.index}.bin", rows),
    )  # fmt: skip


def _times(
    schedule: SessionSchedule, starts: SessionStarts, data: PhaseConversations, first: Ints, turn: Ints
) -> tuple[Ints, Ints]:
    """By arrival: the due time, -1 where it depends on live answers; and the earliest possible due time."""
    due_ns = np.full(len(turn), -1, dtype=np.int64)
    due_ns[first] = starts.due_ns
    expected_ns = np.repeat(starts.due_ns, starts.turns)
    if schedule.spacing_ns is not None:
        return due_ns, expected_ns + turn * schedule.spacing_ns
    for at, entry, turns in zip(first.tolist(), starts.entry.tolist(), starts.turns.tolist(), strict=True):
        for later in range(1, turns):
            recorded_ns = data.timestamp_ns(entry, later)
            if recorded_ns >= 0:
                due_ns[at + later] = max(0, recorded_ns - schedule.zero_ns)
            expected_ns[at + later] = max(expected_ns[at + later - 1], due_ns[at + later])
    return due_ns, expected_ns


def _collected(schedule: SessionSchedule, maker: str, phase: PhasePlan, data: PhaseConversations) -> SessionStarts:
    """The sessions that can start in the phase, limited by its session count, request count and duration."""
    limit = min((count for count in (phase.session_count, phase.request_count) if count is not None), default=math.inf)
    end_ns = math.inf if phase.duration_ns is None else phase.duration_ns
    starts = SessionStarts(*(np.empty(0, dtype=np.int64) for _ in range(3)))
    while (sessions := len(starts.due_ns)) < limit:
        count = int(min(BLOCK, limit - sessions))
        block = _block(schedule, maker, sessions, count, data, int(starts.due_ns[-1]) if sessions else 0)
        starts = SessionStarts(*(np.concatenate(pair) for pair in zip(astuple(starts), astuple(block), strict=True)))
        if len(block.due_ns) < count or block.due_ns[-1] >= end_ns or _sufficient(starts, schedule.spacing_ns, phase):
            break
    return starts


def _sufficient(starts: SessionStarts, spacing_ns: int | None, phase: PhasePlan) -> bool:
    """Whether all requests of the phase's count are due before any session that starts later."""
    if spacing_ns is None or phase.request_count is None:
        return False
    earlier = np.minimum(starts.turns, -(-(starts.due_ns[-1] - starts.due_ns) // max(1, spacing_ns)))
    return int(earlier.sum()) >= phase.request_count


def _block(
    schedule: SessionSchedule, maker: str, first: int, count: int, data: PhaseConversations, last_ns: int
) -> SessionStarts:
    """A block of the schedule, checked against its contract."""
    with blamed(maker, f"failed at session {first}"):
        starts = SessionStarts(*(np.asarray(column) for column in astuple(schedule.starts(first, count))))
    columns, due_ns = astuple(starts), starts.due_ns
    shapes = {(column.dtype, column.shape) for column in columns}
    if shapes != {(np.dtype(np.int64), (len(due_ns),))} or len(due_ns) > count:
        arrays = ", ".join(f"{column.dtype} of shape {column.shape}" for column in columns)
        raise PluginError(f"{maker} gave {arrays} for {count} sessions; the contract wants int64, one value per session")
    if len(due_ns) and (due_ns[0] < last_ns or (np.diff(due_ns) < 0).any()):
        raise PluginError(f"{maker} gave sessions that go back in time, at or after session {first}")
    for n, (entry, turns) in enumerate(zip(starts.entry.tolist(), starts.turns.tolist(), strict=True), first):
        if not 0 <= entry < data.count:
            raise PluginError(f"{maker} gave session {n} the entry {entry}, and the phase has {data.count}")
        if not 1 <= turns <= data.turns(entry):
            raise PluginError(f"{maker} gave session {n} {turns} turns, and its conversation has {data.turns(entry)}")
    return starts
