"""The order in which a run first uses the entries of its data set, and what is known of them before they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from aiperf.registry.samplers import sampler_of
from aiperf.rundir.int_files import read_ints
from aiperf.rundir.store import Store
from aiperf.sdk.dataset import Promise
from aiperf.sdk.plan import PhasePlan, Plan

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

_WAVE_NS = 2_000_000_000
_DRAWS = 2
"""A phase is looked ahead for so many times its entries; those it has not used then are made in the order of their numbers."""
_SEVERAL = 2
"""Turns of the longest conversation, where it is only known to have more than one."""


def recorded_ms(promise: Promise) -> Callable[[int, int], float | None] | None:
    """When turns were recorded, by the entry and the turn, both from 0; None where that is not promised."""
    single = promise.timestamp_ms
    return promise.turn_timestamp_ms or (None if single is None else lambda entry, _: single(entry))


class Promised:
    """The store of a data set that is not whole yet, as far as schedules ask; *whole* makes it whole.

    asked_turns: whether anybody asked for turns, which a data set may have to count.
    """

    def __init__(self, promise: Promise, whole: Callable[[], Store]) -> None:
        self.promise, self._whole, self.recorded_ms = promise, whole, recorded_ms(promise)
        self.max_turns = promise.turns if isinstance(promise.turns, int) else _SEVERAL
        self.asked_turns, self.trees = False, promise.trees

    def turns(self, entry: int) -> int:
        turns, self.asked_turns = self.promise.turns, True
        if turns is None:
            return self._whole().turns(entry)
        return turns if isinstance(turns, int) else turns(entry)

    def timestamp_ns(self, entry: int, turn: int) -> int:
        if self.recorded_ms is None:
            return self._whole().timestamp_ns(entry, turn)
        at_ms = self.recorded_ms(entry, turn)
        return -1 if at_ms is None else round(at_ms * 1e6)


class FirstUse(Struct, frozen=True):
    """numbers: of the entries, each once; None is their own order.  wave: how many must be there before the load.

    due_ns: when each of *numbers* is due, in ns after the begin of the load; None where that is not known.
    """

    numbers: Callable[[], Iterator[int]] | None
    wave: int
    due_ns: Ints | None


def first_use(plan: Plan, promise: Promise) -> FirstUse:
    """The order of first use by the phases of *plan*; all of them are the wave where the data set can't be made in it."""
    phases, count, due_ns = plan.load.phases, plan.data.entries, None
    once = not plan.plugins.fact("samplers", plan.data.sampling, "repeats")  # as many sessions as entries use each of them
    if len(phases) == 1 and (phases[0].sessions_file is not None or (promise.turns == 1 and once)):
        due_ns = _starts_ns(phases[0])
    if len(phases) == 1 and (wave := _in_order(plan, phases[0])) is not None:
        return FirstUse(None, wave, due_ns)
    if not promise.any_order:
        return FirstUse(None, count, None)
    waves = [_wave(phase) for phase in phases]

    def numbers() -> Iterator[int]:
        seen = bytearray(count)
        begins = (islice(_used(plan, phase), wave) for phase, wave in zip(phases, waves, strict=True))
        for number in chain(*begins, *(_used(plan, phase) for phase in phases), range(count)):
            if not seen[number]:
                seen[number] = 1
                yield number

    return FirstUse(numbers, sum(waves), due_ns)


def _starts_ns(phase: PhasePlan) -> Ints | None:
    """When sessions may begin, in ns after the phase's start; None where that is when slots are free."""
    if phase.due_file is None:
        return None
    due_ns = read_ints(Path(phase.due_file))
    return due_ns if phase.sessions_file is None else due_ns[_sessions(phase.sessions_file)[:, 2]]


def _wave(phase: PhasePlan) -> int:
    """How many sessions may begin with the phase: for its slots, or in the first two seconds of its schedule."""
    starts_ns = _starts_ns(phase)
    if starts_ns is None:
        return phase.concurrency or phase.prefill_concurrency or 1
    return int(starts_ns.searchsorted(_WAVE_NS))


def _in_order(plan: Plan, phase: PhasePlan) -> int | None:
    """The wave of a phase that takes the entries in their own order; None for other phases."""
    if phase.sessions_file is not None:
        entries = _sessions(phase.sessions_file)[:, 0]
        wave = int(entries[: _wave(phase)].max(initial=-1)) + 1
        first_used = list(dict.fromkeys(entries.tolist()))
        return wave if first_used == sorted(first_used) else None
    in_order = plan.plugins.fact("samplers", plan.data.sampling, "in_order") and phase.first_entry == 0
    return _wave(phase) if in_order else None


def _used(plan: Plan, phase: PhasePlan) -> Iterator[int]:
    """The entries of the phase's sessions, in the order in which these begin."""
    if phase.sessions_file is not None:
        return iter(_sessions(phase.sessions_file)[:, 0].tolist())
    sample, seed = sampler_of(plan), plan.run.seed
    bounds = (phase.session_count, phase.request_count, _DRAWS * phase.entries)
    sessions = min(bound for bound in bounds if bound is not None)
    return (phase.first_entry + sample(seed, session, phase.entries) for session in range(sessions))


def _sessions(path: str) -> Ints:
    """The rows of a sessions' file: entry, turns, number of the first arrival."""
    return read_ints(Path(path)).reshape(-1, 3)
