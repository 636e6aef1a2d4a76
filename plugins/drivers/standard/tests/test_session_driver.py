"""Sessions with times of their own, on a clock that is turned by hand: what leaves when, and behind what."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator

import pytest
from aiperf.sdk.driver import ARRIVALS, SESSIONS, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from aiperf_driver_standard import sessions as module
from aiperf_driver_standard.sessions import SessionsDriver

START = 1_000
"""When the phase begins; the clock's unit is a ns."""


class Clock:
    """The time, and the timer that waits for it."""

    def __init__(self) -> None:
        self.now = START
        self.at: int | None = None
        self.call: Callable[[], None] = lambda: None

    def read(self) -> int:
        return self.now

    def timer(self, call: Callable[[], None]) -> Clock:
        self.call = call
        return self

    def set(self, at_ns: int) -> None:
        self.at = at_ns

    def close(self) -> None:
        self.at = None

    def until(self, at: int) -> None:
        """Let the time pass up to *at* after the phase's start, the timer firing whenever it is due."""
        while self.at is not None and self.at <= START + at:
            self.now, self.at = max(self.now, self.at), None
            self.call()
        self.now = START + at


class Host:
    """Writes down what leaves: when, session, turn, due and how long it was held; times after the phase's start."""

    def __init__(self, clock: Clock, delay: int = 0) -> None:
        self.clock, self.delay = clock, delay
        self.left: list[tuple[int, int, int, int, int]] = []
        self.numbers: list[int] = []
        self.open: dict[int, Session] = {}

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        assert entry is not None and turns is not None
        return Session(phase.index, number, entry, turns, 0, 0, f"s{number}")

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        self.left.append((self.clock.now - START, session.number, session.turn, due_ns - START, held_ns))
        self.numbers.append(n)
        self.open[session.number] = session

    def delay_ns(self, session: Session) -> int:
        return self.delay


class Stage:
    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.clock, self.loop = clock, loop

    def driver(
        self, sessions: list[list[int]], *, shard: int = 0, of: int = 1, concurrency: int | None = None,
        spacing: int | None = None, delay: int = 0, started: int = 0, prefills: int | None = None,
    ) -> SessionsDriver:  # fmt: skip
        """*sessions*: the due time of each turn, -1 where only the answer will tell."""
        due = [at for turns in sessions for at in turns]
        rows, first = [], 0
        for entry, turns in enumerate(sessions):
            rows += [entry, len(turns), first]
            first += len(turns)
        self.host = Host(self.clock, delay)
        self.progress = [0, started, 0, 0]
        phase = PhasePlan("profiling", "profiling", 0, "any", concurrency=concurrency, spacing_ns=spacing)
        gate = SlotGate(LocalSlots(concurrency), None if prefills is None else LocalSlots(prefills))
        self.made = SessionsDriver(
            None,
            DriverContext(
                phase, self.host, gate, self.loop, self.clock.timer,
                LocalCounter(self.progress, ARRIVALS), LocalCounter(self.progress, SESSIONS), self.progress,
                due=memoryview(array("q", due)), sessions=memoryview(array("q", rows)), shard=shard, shards=of,
            )
        )  # fmt: skip
        self.made.begin(START)
        return self.made

    def answer(self, number: int, late: int = 0) -> None:
        """*late*: how long before now the last byte of the answer came."""
        session = self.host.open.pop(number)
        session.answered_ns = self.clock.now - late
        self.made.request_ended(session)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic_ns", clock.read)
    loop = asyncio.new_event_loop()
    yield Stage(clock, loop)
    loop.close()


def test_sessions_start_at_their_times_and_the_last_answer_is_the_end(stage: Stage) -> None:
    driver = stage.driver([[0], [100], [250]])
    stage.clock.until(250)
    assert stage.host.left == [(0, 0, 0, 0, 0), (100, 1, 0, 100, 0), (250, 2, 0, 250, 0)]
    assert stage.host.numbers == [0, 1, 2]
    assert driver.complete, "every turn has left; the answers are the engine's affair"


def test_a_recorded_turn_leaves_at_its_time_but_never_before_the_answer(stage: Stage) -> None:
    stage.driver([[0, 100], [0, 50]])
    stage.clock.until(30)
    stage.answer(0)  # in time: the turn waits for 100
    stage.clock.until(80)
    stage.answer(1)  # 30 late: it leaves with the answer
    stage.clock.until(200)
    assert stage.host.left[2:] == [(80, 1, 1, 50, 30), (100, 0, 1, 100, 0)]


def test_a_turn_without_a_time_leaves_so_long_behind_the_answer(stage: Stage) -> None:
    stage.driver([[0, -1]], delay=40)
    stage.clock.until(25)
    stage.answer(0)
    stage.clock.until(500)
    assert stage.host.left[1:] == [(65, 0, 1, 65, 0)]


def test_a_turn_without_a_time_is_due_from_the_stamp_of_the_answer(stage: Stage) -> None:
    stage.driver([[0, -1, -1]], delay=40)
    stage.clock.until(25)
    stage.answer(0, late=15)
    stage.clock.until(100)
    stage.answer(0, late=60)  # the loop heard of it after the turn was due: the whole lateness is the loop's
    stage.clock.until(500)
    assert stage.host.left[1:] == [(50, 0, 1, 50, 0), (100, 0, 2, 80, 0)]


def test_an_answer_holds_a_recorded_turn_until_its_stamp(stage: Stage) -> None:
    stage.driver([[0, 50]])
    stage.clock.until(80)
    stage.answer(0, late=10)
    assert stage.host.left[1:] == [(80, 0, 1, 50, 20)]


def test_with_a_spacing_the_next_turn_follows_the_one_before_it(stage: Stage) -> None:
    stage.driver([[0, -1, -1, -1]], spacing=100)
    for answered in (20, 150, 290):  # in time; then at 150 of 200; then late by 90
        stage.clock.until(answered)
        stage.answer(0)
    stage.clock.until(600)
    assert [row[0] for row in stage.host.left] == [0, 100, 200, 300]


def test_a_late_turn_moves_those_behind_it(stage: Stage) -> None:
    stage.driver([[0, -1, -1]], spacing=100)
    stage.clock.until(170)
    stage.answer(0)  # due at 100: leaves now, held by 70
    stage.clock.until(180)
    stage.answer(0)
    stage.clock.until(600)
    assert stage.host.left[1:] == [(170, 0, 1, 100, 70), (270, 0, 2, 270, 0)]


def test_a_shard_starts_every_nth_session_and_numbers_arrivals_as_the_whole(stage: Stage) -> None:
    sessions = [[0, 10], [20], [40, 50, 60], [80], [100]]
    stage.driver(sessions, shard=1, of=2)
    stage.clock.until(1000)
    assert [(row[1], row[3]) for row in stage.host.left] == [(1, 20), (3, 80)]
    assert stage.host.numbers == [2, 6]
    assert stage.progress[SESSIONS] == 2


def test_another_process_goes_on_behind_the_sessions_that_were_started(stage: Stage) -> None:
    stage.driver([[0], [20], [40], [60]], started=2)
    stage.clock.until(1000)
    assert [row[1] for row in stage.host.left] == [2, 3]


def test_a_session_waits_for_a_slot_and_reports_how_long(stage: Stage) -> None:
    driver = stage.driver([[0], [10], [20]], concurrency=1)
    stage.clock.until(70)
    assert [row[1] for row in stage.host.left] == [0]
    stage.answer(0)
    stage.loop.run_until_complete(asyncio.sleep(0))
    stage.clock.until(90)
    stage.answer(1)
    stage.loop.run_until_complete(asyncio.sleep(0))
    assert stage.host.left[1:] == [(70, 1, 0, 10, 60), (90, 2, 0, 20, 70)]
    assert driver.complete


def test_turns_and_sessions_leave_in_the_order_of_their_due_times(stage: Stage) -> None:
    stage.driver([[0, 30], [20], [40]])
    stage.clock.until(5)
    stage.answer(0)
    stage.clock.now = START + 45  # the loop was away from 5 to 45
    stage.clock.until(45)
    assert [(row[1], row[2]) for row in stage.host.left] == [(0, 0), (1, 0), (0, 1), (2, 0)]


def test_a_stopped_driver_sends_nothing_more(stage: Stage) -> None:
    driver = stage.driver([[0, 30], [20], [40]])
    stage.clock.until(25)
    driver.stop()
    stage.answer(0)
    stage.answer(1)
    stage.clock.until(1000)
    assert len(stage.host.left) == 2
    assert driver.complete


def test_turns_pass_a_session_that_waits_for_a_slot(stage: Stage) -> None:
    driver = stage.driver([[0, 20], [10]], concurrency=1)
    stage.clock.until(15)  # the second session waits for the slot of the first
    stage.answer(0)
    stage.clock.until(30)
    assert [row[1:3] for row in stage.host.left] == [(0, 0), (0, 1)]
    stage.answer(0)
    stage.clock.until(40)
    assert stage.host.left[2:] == [(30, 1, 0, 10, 20)]
    assert driver.complete


def test_a_turn_gets_its_prefill_slot_while_a_session_waits_for_another(stage: Stage) -> None:
    driver = stage.driver([[0, 10], [5], [20]], concurrency=2, prefills=1)
    stage.clock.until(2)
    driver.first_token(stage.host.open[0])
    stage.clock.until(6)
    stage.answer(0)  # session 1 has the one prefill slot
    stage.clock.until(30)  # turn 1 of session 0 waits for it, session 2 for a session's slot
    driver.first_token(stage.host.open[1])
    assert (0, 1) in [(session, turn) for _, session, turn, *_ in stage.host.left]
