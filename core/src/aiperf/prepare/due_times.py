"""Due times, sessions and rising limits of a phase: from its schedule and its ramps to files that workers map.

``due-<phase>.bin``       by arrival: due time in ns after the phase's start; -1 where it depends on live answers
``sessions-<phase>.bin``  by session: entry, turns, and number of the first arrival
``limits-<phase>.bin``    by level of a rising limit: its time in ns after the phase's start

Integers are little-endian int64.  Sessions are in the order of their starts; their arrivals are numbered consecutively.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec.structs import astuple, replace

from aiperf.errors import ConfigError, PluginError
from aiperf.redaction import private
from aiperf.registry.guides import where_is
from aiperf.registry.hooks import Hooks
from aiperf.registry.samplers import sampler_of
from aiperf.registry.third_party import blamed, load
from aiperf.rundir.int_files import append_ints, write_ints
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.draws import BLOCK
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan, Plan, PluginPlan
from aiperf.sdk.ramp import Ramp, ramp_points
from aiperf.sdk.sampler import Sampler
from aiperf.sdk.schedule import Conversations, DrivenSchedule, Schedule, ScheduleContext, SessionSchedule, SessionStarts

_TOLERANCE = 1e-9
_SPARE_NS = 3600 * 10**9
_MOST_SPARE = 1 << 22


class StoredTurns(Protocol):
    """What due times need of a store."""

    max_turns: int

    def turns(self, entry: int) -> int:
        """Number of turns of the entry's conversation."""

    def timestamp_ns(self, entry: int, turn: int) -> int:
        """The send time in a recorded trace, -1 outside traces."""


class PhaseConversations:
    """The stored entries of a phase, numbered from 0, as a schedule sees them."""

    def __init__(self, phase: PhasePlan, store: StoredTurns, sampler: Sampler, seed: int) -> None:
        self.count = phase.entries
        self._first, self._store, self._sampler, self._seed = phase.first_entry, store, sampler, seed

    def entry(self, session: int) -> int:
        return self._sampler(self._seed, session, self.count)

    def turns(self, entry: int) -> int:
        return self._store.turns(self._first + entry)

    def timestamp_ns(self, entry: int, turn: int) -> int:
        return self._store.timestamp_ns(self._first + entry, turn)


def with_due_times(plan: Plan, phase: PhasePlan, store: StoredTurns, hooks: Hooks) -> PhasePlan:
    """The phase with its driver, its due file and the most requests it can make; without pacing there is no file.

    A schedule that starts sessions says all there is to say of them (:func:`with_sessions`). Others give
    ticks: below the request count, before the end of the duration. Under a session count every turn takes a tick, and a
    tick that finds no turn ready and every session started is nobody's: how many there will be depends on the answers. So
    the file then holds the sessions' turns, and spare ticks behind them for an hour of waiting (at most four million); the
    worker stops at the sessions' end, not at the file's.

    Raises:
        ConfigError: No request is due before the phase ends.
        PluginError: The schedule breaks its contract.
    """
    data = PhaseConversations(phase, store, sampler_of(plan), plan.run.seed)
    phase = replace(phase, turns=_turns(phase, store, data))
    schedule, maker = make_schedule(plan, phase, data, hooks)
    phase = replace(phase, driver=_driver(plan, schedule, maker))
    if not schedule.paced:
        # Without pacing a limit must hold requests back; a plugin's schedule may come without one.
        return replace(phase, concurrency=1) if phase.concurrency is None and phase.prefill_concurrency is None else phase
    if isinstance(schedule, SessionSchedule):
        timed = with_sessions(plan, phase, data, schedule, maker)
    else:
        timed = _with_ticks(plan, phase, store, schedule, maker)
    if timed.due_file is None or Path(timed.due_file).stat().st_size == 0:
        lasts = "" if phase.duration_ns is None else f" of {phase.duration_ns / 1e9:g} s"
        rate = "" if phase.rate is None else f" at {phase.rate:g} requests/s"
        raise ConfigError(f"no request is due within the {phase.name}{lasts}{rate}", "raise the rate, or the duration")
    return timed


def _driver(plan: Plan, schedule: Schedule, maker: str) -> str:
    """The name of the driver that fits the schedule."""
    if isinstance(schedule, DrivenSchedule):
        driver = schedule.driver
    else:
        driver = "sessions" if isinstance(schedule, SessionSchedule) else "paced" if schedule.paced else "burst"
    if driver not in plan.plugins.drivers:
        installed = names(sorted(plan.plugins.drivers))
        raise PluginError(f"{maker} wants the driver {driver!r}; installed are {installed}", *where_is("drivers", driver))
    return driver


def _with_ticks(plan: Plan, phase: PhasePlan, store: StoredTurns, schedule: Schedule, maker: str) -> PhasePlan:
    """The phase with a due file of ticks."""
    path = Path(plan.output.journal) / f"due-{phase.index}.bin"
    spare = store.max_turns > 1 and phase.session_count is not None and phase.request_count is None
    ticks = 0
    with private(path).open("wb") as file:
        for due in _blocks(schedule, maker, phase, phase.turns, spare=spare):
            append_ints(file, due)
            ticks += len(due)
    return replace(phase, planned=None if spare else ticks, due_file=str(path))


def make_schedule(plan: Plan, phase: PhasePlan, data: Conversations | None, hooks: Hooks) -> tuple[Schedule, str]:
    """The schedule of a phase, and the plugin that made it, for messages.

    Raises:
        PluginError, ConfigError: No plugin makes it, or the plugin refuses the phase.
    """
    gaps = None if phase.pattern is None else load(plan.plugins.arrivals[phase.pattern])
    ramp = ramp_of(plan.plugins, phase) if phase.rate_ramp_ns else None
    context = ScheduleContext(plan.run.seed, phase, gaps, ramp, data, plan.data.source)
    schedule: Schedule | None = hooks.call("aiperf_make_schedule", plan=plan, phase=phase, context=context)
    if schedule is None:
        raise PluginError(f"no plugin makes the schedule {phase.schedule!r} of the phase {phase.name!r}")
    named = plan.plugins.schedules.get(phase.schedule)
    maker = named if named is not None and load(named) is type(schedule) else hooks.author("aiperf_make_schedule")
    return schedule, str(maker)


def _turns(phase: PhasePlan, store: StoredTurns, data: PhaseConversations) -> int | None:
    """The upper bound of the phase's requests; None where only time ends the phase."""
    if phase.request_count is not None or phase.session_count is None:
        return phase.request_count
    if store.max_turns == 1:
        return phase.session_count
    return sum(data.turns(data.entry(session)) for session in range(phase.session_count))


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


def with_limits(plan: Plan, phase: PhasePlan) -> PhasePlan:
    """The phase with a file for each rising limit: the time of each level, in ns after the phase's start.

    Raises:
        PluginError: The ramp breaks its contract.
    """

    def limits(name: str, target: int | None, ramp_ns: int | None) -> str | None:
        if target is None or target == 1 or not ramp_ns:
            return None
        levels = levels_ns(ramp_of(plan.plugins, phase), ramp_ns, target)
        return write_ints(Path(plan.output.journal) / f"{name}-{phase.index}.bin", levels)

    concurrency = limits("limits", phase.concurrency, phase.concurrency_ramp_ns)
    prefill = limits("prefill-limits", phase.prefill_concurrency, phase.prefill_ramp_ns)
    return replace(phase, limits_file=concurrency, prefill_limits_file=prefill)


def levels_ns(ramp: Ramp, ramp_ns: int, target: int) -> Ints:
    """Times at which a limit that begins at 1 reaches 2, 3, … *target*, in ns after the phase's start."""
    x, share = ramp_points(ramp, ramp_ns)
    wanted = np.arange(1, target) / max(1, target - 1)
    after = np.searchsorted(share, wanted, side="left")
    part = (wanted - share[after - 1]) / (share[after] - share[after - 1])
    reached: Ints = np.rint((x[after - 1] + part * (x[after] - x[after - 1])) * ramp_ns).astype(np.int64)
    return reached


def ramp_of(plugins: PluginPlan, phase: PhasePlan) -> Ramp:
    """The curve that the phase names; each call checks its contract.

    Raises:
        PluginError: The curve can't be loaded.  Calls raise it where the curve fails or doesn't rise from 0 to 1.
    """
    ref = plugins.ramps[phase.ramp]
    maker, curve = str(ref), load(ref)

    def shares(x: Floats) -> Floats:
        with blamed(maker, "failed"):
            y = np.asarray(curve(x), dtype=np.float64)
        if y.shape != x.shape:
            raise PluginError(f"{maker} gave shares of shape {y.shape} for {x.shape}")
        begins, ends = y[x <= 0], y[x >= 1]
        if not ((np.abs(begins) < _TOLERANCE).all() and (np.abs(ends - 1) < _TOLERANCE).all() and (np.diff(y) >= 0).all()):
            raise PluginError(f"{maker} doesn't rise from 0 at 0 to 1 at 1")
        return np.clip(y, 0.0, 1.0)

    return shares
