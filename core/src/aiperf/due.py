"""Due times of a phase, from its schedule to files that workers map."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf import intfile
from aiperf.draws import BLOCK
from aiperf.errors import AiperfError, ConfigError, PluginError
from aiperf.hookcalls import implementations
from aiperf.limits import ramp_of
from aiperf.schedule import Conversations, Schedule, ScheduleContext, SessionSchedule, sampler_of
from aiperf.starts import PhaseConversations, with_sessions
from aiperf.strangers import blamed, load, who, why

if TYPE_CHECKING:
    from aiperf.columns import Ints
    from aiperf.plan import PhasePlan, Plan
    from aiperf.store import Store

log = logging.getLogger(__name__)

_SPARE_NS = 3600 * 10**9
_MOST_SPARE = 1 << 22


def with_due_times(plan: Plan, phase: PhasePlan, store: Store) -> PhasePlan:
    """The phase with its due file and the most requests it can make; where the schedule paces nothing, there is no file.

    A schedule that starts sessions says all there is to say of them (:mod:`aiperf.starts`).  Others give ticks: below the
    request count, before the end of the duration.  Under a session count every turn takes a tick, and a tick that finds no
    turn ready and every session started is nobody's: how many there will be depends on the answers.  So the file then holds
    the sessions' turns, and spare ticks behind them for an hour of waiting (at most four million); the worker stops at the
    sessions' end, not at the file's.

    Raises:
        ConfigError: Nothing is due before the phase ends.
        PluginError: The schedule breaks its contract.
    """
    phase = replace(phase, turns=_turns(plan, phase, store))
    data = PhaseConversations(phase, store, sampler_of(plan), plan.seed)
    schedule, maker = make_schedule(plan, phase, data)
    if not schedule.paced:
        return phase
    if isinstance(schedule, SessionSchedule):
        timed = with_sessions(plan, phase, data, schedule, maker)
    else:
        timed = _with_ticks(plan, phase, store, schedule, maker)
    if timed.due_file is None or Path(timed.due_file).stat().st_size == 0:
        lasts = "" if phase.duration_ns is None else f" of {phase.duration_ns / 1e9:g} s"
        rate = "" if phase.rate is None else f" at {phase.rate:g} requests/s"
        raise ConfigError(f"no request is due within the {phase.name}{lasts}{rate}", "raise the rate, or the duration")
    return timed


def _with_ticks(plan: Plan, phase: PhasePlan, store: Store, schedule: Schedule, maker: str) -> PhasePlan:
    """The phase with a due file of ticks, whoever takes them."""
    path = Path(plan.journal) / f"due-{phase.index}.bin"
    spare = store.max_turns > 1 and phase.session_count is not None and phase.request_count is None
    ticks = 0
    with path.open("wb") as file:
        for due in _blocks(schedule, maker, phase, phase.turns, spare=spare):
            intfile.append(file, due)
            ticks += len(due)
    return replace(phase, planned=None if spare else ticks, due_file=str(path))


def make_schedule(plan: Plan, phase: PhasePlan, data: Conversations | None = None) -> tuple[Schedule, str]:
    """The schedule the phase names, a hook's or else the plugin of that name; and who made it, for messages.

    Raises:
        PluginError: It can't be had.
    """
    # The last registered first, as pluggy does.
    for name, call in reversed(implementations(plan.hooked(), "aiperf_make_schedule")):
        try:
            found: Schedule | None = call(plan=plan, phase=phase)
        except AiperfError:
            raise
        except Exception as error:  # noqa: BLE001  # strangers' code
            log.warning("hook plugin %s: aiperf_make_schedule failed: %s", name, why(error))
            continue
        if found is not None:
            return found, f"hook plugin {name}"
    ref = plan.schedules[phase.schedule]
    gaps = None if phase.pattern is None else load(plan.arrivals[phase.pattern])
    ramp = ramp_of(plan, phase) if phase.rate_ramp_ns else None
    made = load(ref)
    with blamed(who(ref), "can't be used"):
        schedule: Schedule = made(ScheduleContext(plan.seed, phase, gaps, ramp, data, plan.source))
    return schedule, who(ref)


def _turns(plan: Plan, phase: PhasePlan, store: Store) -> int | None:
    """The most requests the phase can make; None where only time ends it."""
    if phase.request_count is not None or phase.session_count is None:
        return phase.request_count
    if store.max_turns == 1:
        return phase.session_count
    sampler = sampler_of(plan)
    entries = (phase.first_entry + sampler(plan.seed, s, phase.entries) for s in range(phase.session_count))
    return sum(map(store.turns, entries))


def _blocks(schedule: Schedule, maker: str, phase: PhasePlan, limit: int | None, *, spare: bool) -> Iterator[Ints]:
    """Due times in blocks, until the phase ends or the schedule does."""
    import numpy as np

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
    """A block of the schedule, held to its contract."""
    import numpy as np

    with blamed(maker, f"failed at arrival {first}"):
        due: Ints = np.asarray(schedule.due_block(first, count))
    if due.dtype != np.int64 or due.ndim != 1 or len(due) > count:
        raise PluginError(f"{maker} gave {due.dtype} of shape {due.shape} for {count} arrivals; due times are int64, one each")
    if len(due) and (due[0] < last_ns or (np.diff(due) < 0).any()):
        raise PluginError(f"{maker} gave due times that go back in time, at or after arrival {first}")
    return due

