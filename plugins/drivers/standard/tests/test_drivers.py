"""What starts requests, without a server: a fake host that answers when told to."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Any

import pytest
import uvloop
from aiperf.sdk.driver import ARRIVALS, SESSIONS, Driver, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.worker.clock import LoopTimer
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from aiperf_driver_standard.burst import BurstDriver
from aiperf_driver_standard.paced import PacedDriver

LONG_AGO_NS = 1


class FakeHost:
    def __init__(self, turns: int = 1, delay_ns: int = 0) -> None:
        self.turns, self.think_ns = turns, delay_ns
        self.started: list[tuple[int, int, int, int]] = []
        self.open: list[Session] = []
        self.most = 0
        self.held: list[int] = []

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        return Session(phase.index, number, entry or number, turns or self.turns, 0, 0, f"s{number}")

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        self.held.append(held_ns)
        self.started.append((n, session.number, session.turn, due_ns))
        self.open.append(session)
        self.most = max(self.most, len(self.open))

    def delay_ns(self, session: Session) -> int:
        return self.think_ns

    def answer(self, driver: Driver[None], which: int = 0) -> None:
        session = self.open.pop(which)
        if session.prefilling:
            driver.first_token(session)
        driver.request_ended(session)


def context(host: FakeHost, loop: asyncio.AbstractEventLoop, phase: PhasePlan, **changes: Any) -> DriverContext:
    cells = [0, 0]
    arrivals, sessions = LocalCounter(cells, ARRIVALS), LocalCounter(cells, SESSIONS)
    timer = partial(LoopTimer, loop)
    return DriverContext(phase, host, gate(phase), loop, timer, arrivals, sessions, [0, 0], max_turns=host.turns, **changes)


def burst(host: FakeHost, loop: asyncio.AbstractEventLoop, *, concurrency: int | None, **limits: Any) -> BurstDriver:
    phase = PhasePlan("profiling", "profiling", 0, "burst", concurrency=concurrency, **limits)
    return BurstDriver(None, context(host, loop, phase, share=phase.concurrency))


def gate(phase: PhasePlan) -> SlotGate:
    prefill = LocalSlots(phase.prefill_concurrency) if phase.prefill_concurrency is not None else None
    return SlotGate(LocalSlots(phase.concurrency), prefill)


def paced(host: FakeHost, loop: asyncio.AbstractEventLoop, due: list[int], *, shard: int = 0, of: int = 1,
          **limits: Any) -> PacedDriver:  # fmt: skip
    phase = PhasePlan("profiling", "profiling", 0, "request_rate", rate=1.0, **limits)
    return PacedDriver(None, context(host, loop, phase, due=memoryview(array("q", due)), shard=shard, shards=of))


def on_loop(test: Callable[[asyncio.AbstractEventLoop], None]) -> None:
    async def run() -> None:
        test(asyncio.get_running_loop())

    asyncio.run(run())


def test_burst_keeps_exactly_its_concurrency_in_flight_until_the_count_is_reached() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost()
        driver = burst(host, loop, concurrency=4, request_count=12)
        driver.begin(LONG_AGO_NS)
        assert len(host.open) == 4
        while host.open:
            host.answer(driver, -1)
        assert [n for n, *_ in host.started] == list(range(12))
        assert host.most == 4
        assert driver.complete

    on_loop(check)


def test_no_request_of_a_burst_leaves_before_the_phase_begins() -> None:
    sent_ns: list[int] = []

    class Watched(FakeHost):
        def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
            sent_ns.append(monotonic_ns())

    async def check() -> None:
        for lead_ns in range(1_050_000, 3_000_000, 50_000):
            driver = burst(Watched(), asyncio.get_running_loop(), concurrency=1)
            begin_ns = monotonic_ns() + lead_ns
            driver.begin(begin_ns)
            while not sent_ns:
                await asyncio.sleep(0)
            assert sent_ns.pop() >= begin_ns
            driver.stop()

    uvloop.run(check())


def test_burst_with_fewer_requests_than_slots_ends() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost()
        driver = burst(host, loop, concurrency=8, request_count=3)
        driver.begin(LONG_AGO_NS)
        assert len(host.started) == 3
        while host.open:
            host.answer(driver)
        assert driver.complete

    on_loop(check)


def test_a_session_keeps_its_slot_through_all_its_turns() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost(turns=3)
        driver = burst(host, loop, concurrency=2, session_count=4)
        driver.begin(LONG_AGO_NS)
        while host.open:
            assert len({session.number for session in host.open}) <= 2
            host.answer(driver)
        assert sorted((session, turn) for _, session, turn, _ in host.started) == [(s, t) for s in range(4) for t in range(3)]
        assert driver.complete

    on_loop(check)


def test_a_request_count_cuts_sessions_in_the_middle() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost(turns=3)
        driver = burst(host, loop, concurrency=1, request_count=4)
        driver.begin(LONG_AGO_NS)
        while host.open:
            host.answer(driver)
        assert [(session, turn) for _, session, turn, _ in host.started] == [(0, 0), (0, 1), (0, 2), (1, 0)]
        assert driver.complete

    on_loop(check)


def test_a_stopped_burst_sends_nothing_more_and_is_complete_at_once() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost()
        driver = burst(host, loop, concurrency=2)
        driver.begin(LONG_AGO_NS)
        driver.stop()
        assert driver.complete
        while host.open:
            host.answer(driver)
        assert len(host.started) == 2

    on_loop(check)


def test_overdue_arrivals_leave_at_once_and_keep_their_due_times() -> None:
    async def check() -> None:
        host = FakeHost()
        driver = paced(host, asyncio.get_running_loop(), [10, 20, 30])
        driver.begin(LONG_AGO_NS)
        while not driver.complete:
            await asyncio.sleep(0)
        assert [(n, due) for n, _, _, due in host.started] == [(0, 11), (1, 21), (2, 31)]

    asyncio.run(check())


@pytest.mark.parametrize(("shard", "of", "own"), [(0, 2, [0, 2, 4]), (1, 2, [1, 3]), (4, 5, [4])])
def test_a_shard_sends_every_nth_arrival(shard: int, of: int, own: list[int]) -> None:
    async def check() -> None:
        host = FakeHost()
        driver = paced(host, asyncio.get_running_loop(), [1, 2, 3, 4, 5], shard=shard, of=of)
        driver.begin(LONG_AGO_NS)
        while not driver.complete:
            await asyncio.sleep(0)
        assert [n for n, *_ in host.started] == own
        assert [session for _, session, *_ in host.started] == own

    asyncio.run(check())


def test_an_arrival_without_a_slot_waits_and_leaves_when_one_frees() -> None:
    async def check() -> None:
        host = FakeHost()
        driver = paced(host, asyncio.get_running_loop(), [1, 2, 3], concurrency=1)
        driver.begin(LONG_AGO_NS)
        while len(host.started) < 1:
            await asyncio.sleep(0)
        assert len(host.started) == 1
        assert not driver.complete
        host.answer(driver)
        assert [n for n, *_ in host.started] == [0, 1]
        host.answer(driver)
        assert driver.complete
        assert [due for *_, due in host.started] == [2, 3, 4]

    asyncio.run(check())


def test_a_waiting_turn_takes_a_tick_before_a_new_session() -> None:
    async def check() -> None:
        host = FakeHost(turns=2)
        start = monotonic_ns()
        driver = paced(host, asyncio.get_running_loop(), [0, 10**15, 2 * 10**15])
        driver.begin(start)
        while not host.started:
            await asyncio.sleep(0)
        host.answer(driver)
        driver._arrive(1, start)
        assert [(session, turn) for _, session, turn, _ in host.started] == [(0, 0), (0, 1)]
        driver.stop()

    asyncio.run(check())


def test_a_paced_phase_ends_with_its_last_session() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost(turns=2)
        never = monotonic_ns() + 3600 * 10**9
        driver = paced(host, loop, [1, 2, 3, 4, never, never + 1], session_count=2)
        driver.begin(LONG_AGO_NS)
        driver._tick()
        assert [session for _, session, _, _ in host.started] == [0, 1], "two sessions, and two ticks that were nobody's"
        driver._due = memoryview(array("q", [1, 2, 3, 4, 5, 6, never]))
        host.answer(driver)
        host.answer(driver)
        driver._tick()
        assert [(session, turn) for _, session, turn, _ in host.started[2:]] == [(0, 1), (1, 1)]
        host.answer(driver)
        assert not driver.complete
        host.answer(driver)
        assert driver.complete

    on_loop(check)


def test_under_a_ceiling_no_more_sessions_start_than_were_asked_for() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost()
        driver = paced(host, loop, list(range(1, 9)), session_count=3, concurrency=1)
        driver.begin(LONG_AGO_NS)
        driver._tick()
        while host.open:
            host.answer(driver)
            driver._send_waiting()
        assert [session for _, session, _, _ in host.started] == [0, 1, 2]
        assert driver.complete

    on_loop(check)


def test_a_shard_without_a_session_ends_at_once() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        driver = paced(FakeHost(), loop, [1, 2, 3, 4], shard=2, of=4, session_count=2)
        driver.begin(LONG_AGO_NS)
        assert driver.complete

    on_loop(check)


def test_a_turn_of_a_burst_is_due_its_delay_after_the_answers_stamp() -> None:
    async def check() -> None:
        host = FakeHost(turns=3, delay_ns=2_000_000)
        driver = burst(host, asyncio.get_running_loop(), concurrency=1, request_count=3)
        driver.begin(LONG_AGO_NS)
        host.open[0].answered_ns = early = monotonic_ns()
        time.sleep(0.001)  # the loop is busy with something else
        host.answer(driver)
        while not host.open:
            await asyncio.sleep(0)
        assert monotonic_ns() >= early + 2_000_000
        host.open[0].answered_ns = late = monotonic_ns() - 5_000_000  # the loop heard of it after the turn was due
        host.answer(driver)
        assert [due for *_, due in host.started] == [-1, early + 2_000_000, late + 2_000_000]
        assert host.held == [0, 0, 0]

    uvloop.run(check())


def test_a_turn_of_a_burst_that_waits_for_a_slot_is_held_behind_its_delay() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost(turns=2, delay_ns=1_000)
        driver = burst(host, loop, concurrency=2, prefill_concurrency=1, request_count=4)
        driver.begin(LONG_AGO_NS)
        first = host.open[0]
        driver.first_token(first)  # the other session takes the only prefill slot
        first.answered_ns = monotonic_ns() - 1_000_000
        host.answer(driver)
        assert [session for _, session, *_ in host.started] == [0, 1]
        driver.first_token(host.open[0])
        assert host.started[-1] == (2, 0, 1, first.answered_ns + 1_000)
        assert host.held[-1] >= 1_000_000 - 1_000

    on_loop(check)


def test_an_arrival_that_waits_for_an_answer_is_held_until_the_turn_is_due() -> None:
    def check(loop: asyncio.AbstractEventLoop) -> None:
        host = FakeHost(turns=2, delay_ns=1_000)
        driver = paced(host, loop, [0, 0], concurrency=1)
        begin_ns = monotonic_ns() - 1_000_000_000
        driver.begin(begin_ns)
        driver._tick()
        assert len(host.started) == 1, "the second arrival waits for the only slot"
        host.open[0].answered_ns = begin_ns + 400_000_000
        host.answer(driver)
        assert host.started[-1] == (1, 0, 1, begin_ns)
        assert host.held[-1] == 400_001_000, "what it left later than that is the loop's"

    on_loop(check)
