"""What every driver must do: start each arrival once, within the phase's limits, and end."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Any, ClassVar

import pytest
from aiperf.sdk.driver import Driver, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Stream
from aiperf.worker.clock import LoopTimer
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row
from aiperf_testing.tree_trials import SESSIONS_OF_TREES, play_trees

_PATIENCE_S = 60.0
_SESSIONS, _TURNS = 4, 3
"""Sessions of the load, and turns of each."""
_REQUESTS = _SESSIONS * _TURNS
_LATE_NS = 100_000
"""How long after the last stamp of an answer its driver is told."""
_THINK_NS = 500_000
_SPARE = 10_000
"""Due times behind those of the sessions' turns, as a schedule has them under a session count: some find no turn ready, on a
busy machine most."""
_ROWS = [number for session in range(_SESSIONS) for number in (session, _TURNS, session * _TURNS)]


class TrialAnswers:
    """A request starter whose requests are answered when the trial says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int, int]] = []
        """Number of the arrival, number of the session, turn."""
        self.open: dict[Session, Driver[Any]] = {}
        self.active: set[int] = set()
        self.due_ns: frozenset[int] = frozenset()
        """When arrivals are due by schedule, monotonic."""
        self.most_sessions = self.most_prefills = 0

    def answer_all(self) -> None:
        """Answer every open request: its first token, then its end."""
        for session, driver in list(self.open.items()):
            del self.open[session]
            if session.last or driver.complete:
                self.active.discard(session.number)
            if session.prefilling:
                driver.first_token(session)
            session.answered_ns = monotonic_ns() - _LATE_NS
            driver.request_ended(session)


class Starter:
    """The request starter of one driver."""

    driver: Driver[Any]

    def __init__(self, answers: TrialAnswers) -> None:
        self._answers = answers

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        assert number not in {session for _, session, _ in self._answers.sent}, f"session {number} was started twice"
        return Session(phase.index, number, number if entry is None else entry, turns or _TURNS, 0, 0, f"session-{number}")

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        answers = self._answers
        assert not self.driver.complete, "a request was sent after the driver was complete"
        assert session not in answers.open, "a turn was sent before the answer to the turn before it"
        assert session.turn == sum(number == session.number for _, number, _ in answers.sent), "a turn was left out"
        assert due_ns == -1 or monotonic_ns() >= due_ns, "a request was sent before its due time"
        assert held_ns >= 0, f"a request was held for {held_ns} ns: a time is not negative"
        if session.turn and due_ns not in answers.due_ns and (delay_ns := self.delay_ns(session)):
            ready_ns = session.answered_ns + delay_ns
            assert due_ns >= ready_ns, "a turn with a think time is due that long after the answer's last stamp, or later"
        answers.sent.append((n, session.number, session.turn))
        answers.open[session] = self.driver
        answers.active.add(session.number)
        answers.most_sessions = max(answers.most_sessions, len(answers.active))
        answers.most_prefills = max(answers.most_prefills, sum(each.prefilling for each in answers.open))

    def entry(self, phase: PhasePlan, number: int) -> int:
        return number

    def name(self, entry: int) -> str:
        return f"conversation-{entry}"

    def turns(self, entry: int) -> int:
        return _TURNS

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        return None

    def abort_all(self) -> None:
        raise AssertionError("requests were ended early, and no grace period is over")

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return ()

    def child(self, parent: Session, stream: int) -> Session:
        raise AssertionError(f"stream {stream} was started, and no conversation of the trial starts others")

    def delay_ns(self, session: Session) -> int:
        return _THINK_NS if session.turn == 1 else 0


class Trial:
    """Drivers of one phase of four sessions with three turns, one driver per shard, and what they sent."""

    def __init__(self, make: type[Driver[Any]], options: Any, shards: int, **limits: Any) -> None:
        self.answers = TrialAnswers()
        self.completions = 0
        phase = PhasePlan("profiling", "profiling", 0, "contract", rate=1000.0, **limits)
        self.slots = [LocalSlots(phase.concurrency) for _ in range(shards)]
        self.prefills = [LocalSlots(phase.prefill_concurrency) for _ in range(shards)]
        arrivals = _REQUESTS if phase.request_count is not None else _REQUESTS + _SPARE
        due = self.due = array("q", [n * 1_000_000 for n in range(arrivals)])
        counters = [0, 0]
        self.drivers = []
        for shard in range(shards):
            starter = Starter(self.answers)
            limited = phase.prefill_concurrency is not None
            context = DriverContext(
                phase=phase,
                requests=starter,
                gate=SlotGate(self.slots[shard], self.prefills[shard] if limited else None),
                loop=asyncio.get_running_loop(),
                timer=partial(LoopTimer, asyncio.get_running_loop()),
                arrival_numbers=LocalCounter(counters, 0),
                session_numbers=LocalCounter(counters, 1),
                progress=[0, 0],
                due=memoryview(due),
                sessions=memoryview(array("q", _ROWS)),
                shard=shard,
                shards=shards,
                share=phase.concurrency,
                max_turns=_TURNS,
            )
            driver = starter.driver = make(options, context)
            driver.on_complete = self._on_complete
            self.drivers.append(driver)

    def _on_complete(self) -> None:
        self.completions += 1

    def begin(self) -> None:
        start_ns = monotonic_ns()
        self.answers.due_ns = frozenset(start_ns + due_ns for due_ns in self.due)
        for driver in self.drivers:
            driver.begin(start_ns)

    async def run_until(self, condition: Callable[[], bool]) -> None:
        """Answer requests until *condition* holds."""
        until = monotonic_ns() + _PATIENCE_S * 1e9
        while not condition():
            assert monotonic_ns() < until, f"the phase does not end; sent so far: {self.answers.sent}"
            await asyncio.sleep(0.0005)
            self.answers.answer_all()

    def is_over(self) -> bool:
        return all(driver.complete for driver in self.drivers) and not self.answers.open


def _free(slots: LocalSlots) -> int:
    count = 0
    while slots.take():
        count += 1
    return count


class DriverContract:
    """Subclass with a driver's class::

        class TestMineKeepsTheContract(DriverContract):
            driver = Mine

    The phase has due times, session starts and counters, so that each driver finds what it needs.
    """

    driver: ClassVar[type[Driver[Any]]]
    options: ClassVar[Any] = None

    def play(self, *, shards: int = 1, stop_after: int | None = None, **limits: Any) -> Trial:
        """The trial after the phase is over, or after it was stopped behind *stop_after* requests."""

        async def whole() -> Trial:
            faults: list[str] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, about: faults.append(f"{about['message']}: {about.get('exception')!r}"))
            trial = Trial(type(self).driver, type(self).options, shards, **limits)
            trial.begin()
            if stop_after is not None:
                await trial.run_until(lambda: len(trial.answers.sent) >= stop_after or bool(faults))
                for driver in trial.drivers:
                    driver.stop()
                    driver.stop()
                    assert driver.complete, "a stopped driver is complete at once"
            await trial.run_until(lambda: trial.is_over() or bool(faults))
            await asyncio.sleep(0.005)
            assert not faults, f"the loop reports {shown(faults)}: no task may end with an exception"
            return trial

        return asyncio.run(whole())

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("drivers", self.driver)

    def test_every_arrival_is_sent_once_and_the_driver_completes_once(self) -> None:
        trial = self.play(request_count=_REQUESTS)
        assert sorted(n for n, *_ in trial.answers.sent) == list(range(_REQUESTS)), (
            unlike(sorted(n for n, *_ in trial.answers.sent), list(range(_REQUESTS)), "send each arrival once")
        )
        assert trial.completions == 1, unlike(trial.completions, 1, "complete once, behind the last answer")

    def test_a_session_count_is_kept_and_sessions_make_all_their_turns(self) -> None:
        trial = self.play(session_count=_SESSIONS, concurrency=_SESSIONS)
        turns = sorted((session, turn) for _, session, turn in trial.answers.sent)
        assert turns == [(session, turn) for session in range(_SESSIONS) for turn in range(_TURNS)], (
            unlike(turns, "every turn of each session once", "go on with a session until its last turn")
        )
        assert trial.completions == 1, unlike(trial.completions, 1, "complete once, behind the last answer")

    def test_sessions_stay_within_the_concurrency_and_give_their_slots_back(self) -> None:
        trial = self.play(session_count=_SESSIONS, concurrency=2)
        assert 1 <= trial.answers.most_sessions <= 2, (
            unlike(trial.answers.most_sessions, "1 or 2 sessions at once", "take a slot before a session begins")
        )
        assert _free(trial.slots[0]) == 2, unlike(_free(trial.slots[0]), 2, "give a slot back when its session ends")

    def test_requests_without_a_first_token_stay_within_the_prefill_limit(self) -> None:
        trial = self.play(session_count=_SESSIONS, concurrency=3, prefill_concurrency=1)
        assert trial.answers.most_prefills == 1, (
            unlike(trial.answers.most_prefills, 1, "wait for a first token before the next request")
        )
        assert _free(trial.prefills[0]) == 1, (
            unlike(_free(trial.prefills[0]), 1, "give the prefill slot back at the first token, or at the end")
        )

    def test_shards_share_the_arrivals_out(self) -> None:
        trial = self.play(shards=2, request_count=_REQUESTS)
        assert sorted(n for n, *_ in trial.answers.sent) == list(range(_REQUESTS)), (
            unlike(sorted(n for n, *_ in trial.answers.sent), list(range(_REQUESTS)), "send the own share alone, and all of it")
        )
        assert trial.completions == 2, unlike(trial.completions, 2, "each shard completes once")

    def test_a_stopped_driver_sends_nothing_more(self) -> None:
        trial = self.play(stop_after=2, request_count=_REQUESTS, concurrency=2)
        assert len(trial.answers.sent) <= 4, unlike(len(trial.answers.sent), "at most 4", "send nothing behind stop")
        assert trial.completions == 1, unlike(trial.completions, 1, "complete once, also where it was stopped")


    def test_trees_are_sent_whole_and_in_order(self) -> None:
        if not check_row("drivers", self.driver).capabilities.get("trees"):
            pytest.skip("its manifest says nothing of trees")
        slots, prefills = LocalSlots(2), LocalSlots(2)
        starter = asyncio.run(play_trees(type(self).driver, type(self).options, slots, prefills))
        assert len(starter.sent) == SESSIONS_OF_TREES, unlike(len(starter.sent), SESSIONS_OF_TREES, "begin every tree")
        assert not starter.left_out(), unlike(starter.left_out(), "nothing left out", "go on until every stream has ended")
        assert len(set(starter.numbers)) == len(starter.numbers), "two requests have the number of one arrival"
        free = _free(slots), _free(prefills)
        assert free == (2, 2), unlike(free, "2 session and 2 prefill slots", "give a slot back when the whole tree has ended")


__all__ = ["DriverContract"]
