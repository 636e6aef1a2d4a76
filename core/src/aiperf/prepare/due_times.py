"""Due times and sessions of a phase: from its schedule to files that workers map, as its rising limits are.

``due-<phase>.bin``       by arrival: due time in ns after the phase's start; -1 where it depends on live answers
``sessions-<phase>.bin``  by session: entry, turns, and number of the first arrival
``limits-<phase>.bin``    by level of a rising limit: its time in ns after the phase's start

Integers are little-endian int64.  Sessions are in the order of their starts; their arrivals are numbered consecutively.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from aiperf.errors import ConfigError, PluginError
from aiperf.registry.guides import INSTALL_SUITE, where_is
from aiperf.registry.hooks import Hooks
from aiperf.registry.registry import Registry
from aiperf.registry.samplers import sampler_of
from aiperf.registry.third_party import load
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.sampler import Sampler
from aiperf.sdk.schedule import Conversations, DrivenSchedule, Schedule, ScheduleContext, SessionSchedule


class StoredTurns(Protocol):
    """What due times need of a store."""

    max_turns: int
    trees: bool

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

    A schedule that starts sessions says all there is to say of them (:mod:`aiperf.prepare.session_starts`). Others give
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
    phase = replace(phase, driver=_driver(plan, schedule, maker, trees=store.trees))
    if not schedule.paced:
        # Without pacing a limit must hold requests back; a plugin's schedule may come without one.
        return replace(phase, concurrency=1) if phase.concurrency is None and phase.prefill_concurrency is None else phase
    # numpy costs 0.1 s, and a run without due times computes nothing.
    if isinstance(schedule, SessionSchedule):
        from aiperf.prepare.session_starts import with_sessions

        timed = with_sessions(plan, phase, data, schedule, maker)
    else:
        from aiperf.prepare.ticks import with_ticks

        timed = with_ticks(plan, phase, store.max_turns, schedule, maker)
    if store.trees and timed.sessions_file is None:  # children take no ticks, so that some may be nobody's
        timed = replace(timed, planned=None)
    if timed.due_file is None or Path(timed.due_file).stat().st_size == 0:
        lasts = "" if phase.duration_ns is None else f" of {phase.duration_ns / 1e9:g} s"
        rate = "" if phase.rate is None else f" at {phase.rate:g} requests/s"
        raise ConfigError(f"no request is due within the {phase.name}{lasts}{rate}", "raise the rate, or the duration")
    return timed


def _driver(plan: Plan, schedule: Schedule, maker: str, *, trees: bool) -> str:
    """The name of the driver that the schedule names, else of the first one that drives such schedules."""
    drivers, plugins = plan.plugins.drivers, plan.plugins
    if isinstance(schedule, DrivenSchedule):
        driver = schedule.driver
        if driver not in drivers:
            hints = where_is("drivers", driver, Registry.discover())
            raise PluginError(f"{maker} wants the driver {driver!r}; installed are {names(sorted(drivers))}", *hints)
        if trees and not plugins.fact("drivers", driver, "trees"):
            raise PluginError(f"{maker} wants the driver {driver!r}, which drives no conversations that start others")
        return driver
    if isinstance(schedule, SessionSchedule):
        kind, what = "session_starts", "starts sessions"
    else:
        kind, what = ("due_times", "sends at due times") if schedule.paced else ("free_slots", "sends whenever a slot is free")
    fitting = [name for name in drivers if plugins.fact("drivers", name, "drives") == kind]
    suited = [name for name in fitting if bool(plugins.fact("drivers", name, "trees")) == trees]
    if not suited:
        what += ", of conversations that start others" if trees else ""
        raise PluginError(f"{maker} wants a driver that {what}; installed are {names(sorted(drivers))}", INSTALL_SUITE)
    return suited[0]


def make_schedule(plan: Plan, phase: PhasePlan, data: Conversations | None, hooks: Hooks) -> tuple[Schedule, str]:
    """The schedule of a phase, and the plugin that made it, for messages.

    Raises:
        PluginError, ConfigError: No plugin makes it, or the plugin refuses the phase.
    """
    gaps = None if phase.pattern is None else load(plan.plugins.arrivals[phase.pattern])
    ramp = None
    if phase.rate_ramp_ns:
        from aiperf.prepare.ramped_limits import ramp_of

        ramp = ramp_of(plan.plugins, phase)
    context = ScheduleContext(plan.run.seed, phase, gaps, ramp, data, plan.data.source, plan.data.once, plan)
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
