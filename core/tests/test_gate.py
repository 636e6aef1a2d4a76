"""Limits: all that a turn needs or nothing of it, levels that rise in time, and where a shard stands."""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import Callable

import pytest
from aiperf.sdk.driver import ARRIVALS, SESSIONS
from aiperf.worker import slots as slots_module
from aiperf.worker.slots import PREFILLS, SLOTS, LocalSlots, Progress, Rise, SlotGate, make_progress_fd


class Limit(LocalSlots):
    """Slots that write down who waits for them."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.waiting: Callable[[], None] | None = None
        self.said: list[bool] = []

    def take(self) -> bool:
        if self.free == 0:
            return False
        self.free -= 1
        return True

    def give(self, *, quiet: bool = False) -> None:
        self.free += 1
        self.said.append(quiet)

    def notify(self, call: Callable[[], None] | None) -> None:
        self.waiting = call

    def add(self) -> None:
        self.free += 1


def nothing() -> None:
    """Somebody to call."""


def test_a_session_takes_both_slots_or_none() -> None:
    sessions, prefill = Limit(2), Limit(1)
    gate = SlotGate(sessions, prefill)
    assert gate.take_session() and (sessions.free, prefill.free) == (1, 0)
    assert not gate.take_session() and (sessions.free, prefill.free) == (1, 0), "its session slot is given back"
    assert sessions.said == [True], "and nobody is told, who would take it and lack the other"


@pytest.mark.parametrize(("sessions", "prefill", "waits_for"), [(0, 1, "sessions"), (1, 0, "prefill"), (0, 0, "sessions")])
def test_a_gate_waits_for_the_lacking_slot_alone(sessions: int, prefill: int, waits_for: str) -> None:
    limits = {"sessions": Limit(sessions), "prefill": Limit(prefill)}
    gate = SlotGate(limits["sessions"], limits["prefill"])
    assert not gate.take_session()
    gate.wait(nothing)
    assert [name for name, limit in limits.items() if limit.waiting is not None] == [waits_for]
    gate.stop_waiting()
    assert all(limit.waiting is None for limit in limits.values())


def test_without_a_limit_of_prefills_a_turn_needs_nothing() -> None:
    gate = SlotGate(Limit(0))
    assert gate.take_turn() and not gate.limits_prefill
    gate.release_prefill()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock = [0]
    monkeypatch.setattr(slots_module, "monotonic_ns", lambda: clock[0])
    return clock


class Timers:
    """A loop that is asked for one later call at a time."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timers:
        self.asked.append((delay_s, call))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


LEVELS_NS = [0, 100_000_000, 100_000_000, 250_000_000]


def rise(limit: Limit, loop: Timers) -> Rise:
    return Rise(memoryview(array("q", LEVELS_NS)), limit, loop)  # type: ignore[arg-type]


def test_levels_come_at_their_times_several_at_once_if_due_together(now: list[int]) -> None:
    limit, loop = Limit(1), Timers()
    rise(limit, loop).begin(0)
    seen = [limit.free]
    for at in (100_000_000, 250_000_000):
        delay_s, call = loop.asked[-1]
        assert delay_s == pytest.approx((at - now[0]) / 1e9)
        now[0] = at
        call()
        seen.append(limit.free)
    assert seen == [2, 4, 5]
    assert len(loop.asked) == 2, "behind the last level nobody is waited for"


def test_a_loop_that_comes_late_makes_up_for_it(now: list[int]) -> None:
    limit, loop = Limit(1), Timers()
    rise(limit, loop).begin(0)
    now[0] = 400_000_000
    loop.asked[-1][1]()
    assert limit.free == 5


def test_who_takes_over_from_another_counts_no_level_twice(now: list[int]) -> None:
    limit, loop = Limit(0), Timers()
    now[0] = 150_000_000
    rise(limit, loop).begin(0, skip=True)
    assert limit.free == 0, "three levels are in the shared counter already"
    now[0] = 250_000_000
    loop.asked[-1][1]()
    assert limit.free == 1


def test_stopped_a_limit_rises_no_further(now: list[int]) -> None:
    limit, loop = Limit(1), Timers()
    made = rise(limit, loop)
    made.begin(0)
    made.stop()
    now[0] = 400_000_000
    loop.asked[-1][1]()
    assert (limit.free, loop.cancelled) == (2, 1)


def test_a_rising_limit_wakes_a_waiting_driver() -> None:
    async def check() -> list[int]:
        slots, woken = LocalSlots(1), []
        assert slots.take() and not slots.take()
        slots.notify(lambda: woken.append(1))
        slots.add()
        await asyncio.sleep(0)
        assert slots.take()
        return woken

    assert asyncio.run(check()) == [1]


def test_every_worker_and_phase_has_cells_of_its_own_that_others_see() -> None:
    fd = make_progress_fd(2, 3)
    try:
        mine, theirs = Progress(fd, 2, 3), Progress(fd, 2, 3)
        for worker in range(3):
            mine.requests(worker)[0] = 100 + worker
            for phase in range(2):
                for cell in (ARRIVALS, SESSIONS, SLOTS, PREFILLS):
                    mine.of(worker, phase)[cell] = 1000 * worker + 10 * phase + cell
        for worker in range(3):
            assert list(theirs.requests(worker)) == [100 + worker]
            for phase in range(2):
                assert list(theirs.of(worker, phase)) == [1000 * worker + 10 * phase + cell for cell in range(4)]
    finally:
        os.close(fd)
