"""Which entries of the data set each phase uses."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from aiperf.errors import ConfigError
from aiperf.prepare.due_times import StoredTurns
from aiperf.sdk.plan import PhasePlan, Plan

log = logging.getLogger(__name__)


def log_reuse(phases: Sequence[PhasePlan], store: StoredTurns) -> None:
    """Log how often the run repeats each entry: a server may answer repeated entries from its cache."""
    for phase in phases:
        sessions = phase.session_count
        if sessions is None and phase.request_count is not None:
            entries = range(phase.first_entry, phase.first_entry + phase.entries)
            one = store.max_turns == 1 or phase.request_count <= phase.entries  # then the turns don't decide
            turns = len(entries) if one else sum(map(store.turns, entries))
            sessions = -(-phase.request_count * phase.entries // max(1, turns))
        if phase.kind == "profiling" and sessions is not None and sessions > phase.entries:
            log.info(
                "%d sessions use %d data set entries, each about %.3g times: a server may have them in its cache",
                sessions, phase.entries, sessions / phase.entries,
            )  # fmt: skip


def fitted(plan: Plan, entries: int) -> tuple[PhasePlan, ...]:
    """The phases with their parts of the real entries: a data set may give fewer or more than requested.

    Profiling begins at the first entry and warmup takes the last ones, so that they share none where there are enough.  A
    trace, or a data set whose entries are used once, is used whole, and a warmup before it shares its entries.

    Raises:
        ConfigError: A count would use an entry of such a data set twice.
    """
    phases = tuple(_once(plan, phase, entries) if plan.data.once else phase for phase in plan.load.phases)
    whole = plan.data.once or any(phase.replay is not None or phase.lives_on for phase in phases)
    if entries == sum(phase.entries for phase in phases) and not whole:
        return phases
    warmups = [min(phase.entries, entries) for phase in phases if _apart(phase)]
    separate = entries > 2 * sum(warmups) and not whole
    if warmups and not separate:
        log.warning("the data set has %d entries: warmup and profiling use the same ones", entries)
    rest = entries - sum(warmups) if separate else entries
    return tuple(
        replace(phase, first_entry=max(0, entries - phase.entries), entries=min(phase.entries, entries))
        if _apart(phase)
        else replace(phase, first_entry=0, entries=rest)
        for phase in phases
    )


def _apart(phase: PhasePlan) -> bool:
    """Whether it is a warmup with entries of its own."""
    return phase.kind == "warmup" and phase.replay is None and not phase.lives_on


def _once(plan: Plan, phase: PhasePlan, entries: int) -> PhasePlan:
    """The phase; profiling ends with the last entry.  A trace that is replayed does so by itself."""
    if phase.kind == "warmup" or phase.replay is not None:
        return phase
    for flag, count in (("--request-count", phase.request_count), ("--num-sessions", phase.session_count)):
        if count is not None and count > entries:
            raise ConfigError(
                f"{flag} {count}: {plan.data.name or plan.plugins.dataset.name} has {entries} entries, and each is used once",
                f"write {flag} {entries} or less, or drop it to use every entry",
            )
    return phase if phase.request_count is not None else replace(phase, session_count=phase.session_count or entries)
