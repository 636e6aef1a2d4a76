"""Schedules, orders and a driver of the tests' own: the kernel's tests need no plugin for them."""

from __future__ import annotations

import heapq
from array import array
from typing import Any

import numpy as np
from aiperf.errors import ConfigError
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.draws import BLOCK, shuffled, uniform, uniforms
from aiperf.sdk.driver import Driver, DriverContext, Session
from aiperf.sdk.schedule import ScheduleContext, SessionStarts

NS_PER_S = 10**9
SLOTS = PluginRef("drivers", "burst", "schedule_fakes:SlotDriver", "aiperf-core", "0")


# Orders


def sequential(seed: int, session: int, count: int) -> int:
    return session % count


def shuffle(seed: int, session: int, count: int) -> int:
    return shuffled(seed, session // count, count, session % count)


def random(seed: int, session: int, count: int) -> int:
    return int(uniform(seed, "entry", session) * count)


# Arrival patterns and ramps


def constant_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    return np.ones(count)


def exponential_gaps(seed: int, stream: str, block: int, count: int, smoothness: float) -> Floats:
    gaps: Floats = -np.log(uniforms(seed, stream, block, count))
    return gaps


def linear(share: Floats) -> Floats:
    return share


# Schedules


class Slots:
    """Requests leave when slots are free."""

    paced = False

    def __init__(self, context: ScheduleContext) -> None:
        pass

    def due_block(self, first: int, count: int) -> Ints:
        return np.empty(0, dtype=np.int64)


class Rate:
    """The sum of gaps, by a rate that is constant, rises from 1 evenly, or goes from point to point of a series."""

    paced = True

    def __init__(self, context: ScheduleContext) -> None:
        self._context, phase = context, context.phase
        series = phase.rate_series or ((0.0, phase.rate or 1.0),)
        if phase.rate_ramp_ns:
            series = ((0.0, 1.0), (phase.rate_ramp_ns / NS_PER_S, phase.rate or 1.0))
        self._series = [*series, (1e9, series[-1][1])]

    def due_block(self, first: int, count: int) -> Ints:
        context, sums = self._context, np.empty(0)
        for block in range((first + count + BLOCK - 1) // BLOCK):
            assert context.gaps is not None
            gaps = context.gaps(context.seed, context.phase.name, block, BLOCK, context.phase.smoothness)
            sums = np.concatenate((sums, (sums[-1] if block else 0.0) + np.cumsum(gaps)))
        return np.rint([self._at_s(wanted) * NS_PER_S for wanted in sums[first : first + count]]).astype(np.int64)

    def _at_s(self, wanted: float) -> float:
        """When the rate's integral is *wanted*."""
        for (begin_s, low), (end_s, high) in zip(self._series, self._series[1:], strict=False):
            area = (end_s - begin_s) * (low + high) / 2
            if area >= wanted:
                slope = (high - low) / (end_s - begin_s)
                return begin_s + (wanted / low if not slope else ((low * low + 2 * slope * wanted) ** 0.5 - low) / slope)
            wanted -= area
        raise AssertionError("the series ends")


class Trace:
    """Conversations at the times of their first turns."""

    paced, spacing_ns = True, None

    def __init__(self, context: ScheduleContext) -> None:
        assert context.data is not None
        begins_ns = np.array([context.data.timestamp_ns(entry, 0) for entry in range(context.data.count)], dtype=np.int64)
        if (begins_ns < 0).any():
            raise ConfigError(f"{context.source} has no 'timestamp' in the first turn of a conversation")
        entries = np.argsort(begins_ns, kind="stable")
        self.zero_ns = int(begins_ns[entries[0]])
        turns = np.array([context.data.turns(int(entry)) for entry in entries], dtype=np.int64)
        self._columns = begins_ns[entries] - self.zero_ns, entries, turns

    def due_block(self, first: int, count: int) -> Ints:
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        return SessionStarts(*(column[first : first + count] for column in self._columns))


class Lines:
    """As many lines as users, each of one user behind the other; the users there at the begin have one turn more to make each.

    Time is counted in slots of 1/rate: line *k* has the slots with remainder *k*, so that every slot has one request.
    """

    paced, zero_ns = True, 0

    def __init__(self, context: ScheduleContext) -> None:
        phase, self._data = context.phase, context.data
        assert phase.users is not None and phase.rate is not None
        self._users, self._slot_ns = phase.users, NS_PER_S / phase.rate
        self.spacing_ns = round(self._users * self._slot_ns)
        self._next = [(0, 0), *((line, line) for line in range(1, self._users))]
        self._rows = array("q")

    def due_block(self, first: int, count: int) -> Ints:
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        assert self._data is not None
        while len(self._rows) < 3 * (first + count):
            slot, left = self._next[0]
            entry = self._data.entry(len(self._rows) // 3)
            turns = min(left or self._data.turns(entry), self._data.turns(entry))
            heapq.heapreplace(self._next, (slot + turns * self._users, 0))
            self._rows.extend((round(slot * self._slot_ns), entry, turns))
        rows = np.array(self._rows[3 * first : 3 * (first + count)], dtype=np.int64).reshape(-1, 3)
        return SessionStarts(rows[:, 0], rows[:, 1], rows[:, 2])


# The driver


class SlotDriver(Driver[None]):
    """Sends whenever a slot is free: the session's next turn without a pause, or another session."""

    def __init__(self, options: None, context: DriverContext) -> None:
        super().__init__(options, context)
        self._alive, self._over = 0, False

    def begin(self, start_ns: int) -> None:
        self._fill()

    def request_ended(self, session: Session) -> None:
        if not (self.complete or session.last):
            session.turn += 1
            self.think(session, self._continue)
            return
        self._alive -= 1
        self.gate.release_session()
        self._fill()

    def _continue(self, session: Session) -> None:
        if not self.gate.take_turn():
            self.gate.wait(lambda: self._continue(session))
        elif not self._send(session):
            self._alive -= 1
            self.gate.release_session()
            self._fill()

    def _fill(self) -> None:
        most: Any = self.context.share
        while not self.complete and not self._over and (most is None or self._alive < most):
            if not self.gate.take_session():
                self.gate.wait(self._fill)
                return
            session = self.requests.session(self.phase, self.context.session_numbers.next())
            self._alive += 1
            if not self._send(session):
                self._alive -= 1
                self.gate.release_session()
        if self._over and not self._alive:
            self.finish()

    def _send(self, session: Session) -> bool:
        """Start the session's turn; False where the phase makes no more requests."""
        n, most = self.context.arrival_numbers.next(), self.phase.request_count
        self._over = self._over or (most is not None and n >= most)
        if self._over:
            self.gate.release_prefill(quiet=True)
            return False
        self.send(session, n, -1)
        return True
