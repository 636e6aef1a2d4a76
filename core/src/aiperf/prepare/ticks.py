"""The due file of a schedule that gives ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from aiperf.errors import PluginError
from aiperf.redaction import private
from aiperf.registry.third_party import blamed
from aiperf.rundir.int_files import append_ints
from aiperf.sdk.columns import Ints
from aiperf.sdk.draws import BLOCK
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.schedule import Schedule

_SPARE_NS = 3600 * 10**9
_MOST_SPARE = 1 << 22
"""Arrivals that are made beyond the planned turns, and how long behind these."""


def with_ticks(plan: Plan, phase: PhasePlan, max_turns: int, schedule: Schedule, maker: str) -> PhasePlan:
    """The phase with a due file of ticks.  *max_turns*: of the data set's conversations."""
    path = Path(plan.output.journal) / f"due-{phase.index}.bin"
    spare = max_turns > 1 and phase.session_count is not None and phase.request_count is None
    ticks = 0
    with private(path).open("wb") as file:
        for due in _blocks(schedule, maker, phase, phase.turns, spare=spare):
            append_ints(file, due)
            ticks += len(due)
    return replace(phase, planned=None if spare else ticks, due_file=str(path))


def _blocks(schedule: Schedule, maker: str, phase: PhasePlan, limit: int | None, *, spare: bool) -> Iterator[Ints]:
    """Due times in blocks, until the phase ends or the schedule does."""
    end_ns = math.inf if phase.duration_ns is None else phase.duration_ns
    most = math.inf if limit is None else limit + (_MOST_SPARE if spare else 0)
    n, last_ns = 0, 0
    while n < most:
        count = int(min(BLOCK, most - n))
        if spare and limit is not None and n < limit:
            count = min(count, limit - n)
        due = _drawn(schedule, maker, n, count, last_ns)
        kept = due[: int(np.searchsorted(due, end_ns, side="left"))] if end_ns != math.inf else due
        yield kept
        if len(kept) < count:
            return
        n += count
        last_ns = int(kept[-1])
        if spare and n == limit:
            end_ns = min(end_ns, last_ns + _SPARE_NS)


def _drawn(schedule: Schedule, maker: str, first: int, count: int, last_ns: int) -> Ints:
    """A block of the schedule, checked against the contract."""
    with blamed(maker, f"failed at arrival {first}"):
        due: Ints = np.asarray(schedule.due_block(first, count))
    if due.dtype != np.int64 or due.ndim != 1 or len(due) > count:
        raise PluginError(f"{maker} gave {due.dtype} of shape {due.shape} for {count} arrivals; due times are int64, one each")
    if len(due) and (due[0] < last_ns or (np.diff(due) < 0).any()):
        raise PluginError(f"{maker} gave due times that go back in time, at or after arrival {first}")
    return due
