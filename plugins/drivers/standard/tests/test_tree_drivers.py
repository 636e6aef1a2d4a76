"""Random trees without a wire: no turn leaves before what it waits for, none is forgotten, and trees keep to their slots."""

from __future__ import annotations

import asyncio
import random
from array import array
from typing import Any

import pytest
from aiperf.sdk.driver import ARRIVALS, SESSIONS, Driver, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Branch, Pause, Stream, TreeBuilder, faults
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from aiperf_driver_standard import burst, paced, sessions, tree_drivers, trees
from aiperf_driver_standard.tree_drivers import BurstTrees, PacedTrees, SessionTrees

_MS = 1_000_000


class Clock:
    """A time that is turned by hand, and the timers that wait for it."""

    def __init__(self) -> None:
        self.now = 1
        self.timers: list[HandTimer] = []

    def read(self) -> int:
        return self.now


class HandTimer:
    def __init__(self, clock: Clock, call: Any) -> None:
        self._call, self.at = call, 0
        clock.timers.append(self)

    def set(self, at_ns: int) -> None:
        self.at = at_ns

    def close(self) -> None:
        self.at = 0

    def fire(self) -> None:
        self.at = 0
        self._call()


def random_tree(draw: random.Random) -> tuple[Stream, ...]:
    """A tree of up to some twenty streams."""
    builder = TreeBuilder()

    def grow(depth: int) -> int:
        turns = 0 if not depth and draw.random() < 0.1 else draw.randint(1, 4)
        number = builder.stream(f"s{draw.random()}", turns)
        rounds = draw.randint(1, 3) if not turns else 0
        before: tuple[int, ...] = ()
        for _ in range(rounds):
            children = tuple(grow(depth + 1) for _ in range(draw.randint(1, 2)))
            pause = Pause(draw.random() * 20, draw.choice((0.0, 0.5))) if draw.random() < 0.5 else None
            before = (builder.branch(number, Branch(children, behind=before, pause=pause)),)
        for turn in range(turns):
            while depth < 3 and draw.random() < 0.4 / (depth + 1):
                children = tuple(grow(depth + 1) for _ in range(draw.randint(1, 3)))
                joins = draw.randint(turn + 1, turns - 1) if turn + 1 < turns and draw.random() < 0.7 else None
                offsets = tuple(draw.choice((0.0, 5.0)) for _ in children) if draw.random() < 0.3 else ()
                builder.branch(number, Branch(children, turn, joins, forks=draw.random() < 0.3, offsets_ms=offsets))
        if turns and draw.random() < 0.1:
            builder.branch(number, Branch((grow(depth + 1),)))
        return number

    grow(0)
    return builder.streams()


class Host:
    """Answers requests in a random order, and judges each send."""

    def __init__(self, draw: random.Random, clock: Clock, entries: list[tuple[Stream, ...]], failing: float = 0.0) -> None:
        self.draw, self.clock, self.entries, self._failing = draw, clock, entries, failing
        self.driver: Driver[Any]
        self.open: list[Session] = []
        self.numbers: list[int] = []
        self.sent: dict[int, list[int]] = {}
        self.ended: dict[int, set[int]] = {}
        self.over: dict[int, set[int]] = {}
        self.live, self.most_live = set[int](), 0
        self.fails_fast = False

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        entry = number % len(self.entries) if entry is None else entry
        one = self.entries[entry]
        self.sent[number], self.ended[number], self.over[number] = [], set(), set()
        self.live.add(number)
        self.most_live = max(self.most_live, len(self.live))
        return Session(phase.index, number, entry, min(one[0].turns, turns or 1 << 30), 0, 0, f"{number}")

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return self.entries[entry]

    def child(self, parent: Session, stream: int) -> Session:
        one = self.entries[parent.entry][stream]
        child = Session(0, parent.number, parent.entry, one.end, 0, 0, f"{parent.number}/{stream}")
        child.turn, child.stream, child.first = one.first, stream, parent.first
        return child

    def delay_ns(self, session: Session) -> int:
        return (session.turn % 3) * 2 * _MS

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        streams, number, place = self.entries[session.entry], session.number, session.turn
        stream = streams[session.stream]
        assert stream.first <= place < stream.end
        assert place not in self.sent[number], "a turn was sent twice"
        assert all(earlier in self.ended[number] for earlier in range(stream.first, place)), "before the turn before"
        for branch in stream.branches:
            if branch.joins == place - stream.first and not self.fails_fast:  # where families end without a last answer
                assert all(child in self.over[number] for child in branch.children), "a gated turn before its last child's end"
        if stream.parent >= 0 and place == stream.first:
            parent = streams[stream.parent]
            branch = next(one for one in parent.branches if session.stream in one.children)
            if branch.after is not None:
                assert parent.first + branch.after in self.ended[number], "a child before the turn that starts it"
            for earlier in branch.behind if not self.fails_fast else ():
                assert all(child in self.over[number] for child in parent.branches[earlier].children)
        assert due_ns <= self.clock.now, "before its time"
        self.sent[number].append(place)
        self.numbers.append(n)
        self.open.append(session)

    def run(self, driver: Driver[Any], done: Any) -> None:
        """Answer until the driver is complete, and nothing is open."""
        for _ in range(100_000):
            if done() and not self.open:
                return
            if self.open and self.draw.random() < 0.7:
                self._answer(driver, self.open.pop(self.draw.randrange(len(self.open))))
            else:
                self._tick()
        raise AssertionError(f"the phase does not end: {self.sent}")

    def _tick(self) -> None:
        due = [timer.at for timer in self.clock.timers if timer.at]
        self.clock.now = max(self.clock.now + 1, min(due, default=self.clock.now + _MS))
        for timer in list(self.clock.timers):
            if 0 < timer.at <= self.clock.now:
                timer.fire()

    def _answer(self, driver: Driver[Any], session: Session) -> None:
        self.clock.now += 1000
        session.failed = bool(session.stream) and self.draw.random() < self._failing
        self.ended[session.number].add(session.turn)
        if session.last or session.failed:
            self.over[session.number].add(session.stream)
        session.answered_ns = self.clock.now
        if session.prefilling:
            driver.first_token(session)
        driver.request_ended(session)

    def left_out(self, number: int, entry: int) -> set[int]:
        """Turns of the tree that were not sent."""
        return set(range(sum(stream.turns for stream in self.entries[entry]))) - set(self.sent[number])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (burst, paced, sessions, tree_drivers, trees):
        monkeypatch.setattr(module, "monotonic_ns", clock.read)
    monkeypatch.setattr("aiperf.sdk.driver.monotonic_ns", clock.read)
    return clock


def driven(
    kind: type[Driver[Any]], host: Host, loop: asyncio.AbstractEventLoop, *, slots: int, count: int, **limits: Any
) -> Driver[Any]:  # fmt: skip
    """A driver of *count* trees behind so many session slots and three prefill slots."""
    phase = PhasePlan("profiling", "profiling", 0, "x", concurrency=slots, prefill_concurrency=3, **limits)
    cells = [0, 0]
    totals = [sum(stream.turns for stream in host.entries[number % len(host.entries)]) for number in range(count)]
    rows = array("q")
    for number, total in enumerate(totals):
        rows.extend((number % len(host.entries), total, sum(totals[:number])))
    due = array("q", [-1] * sum(totals))
    for number in range(count):
        due[sum(totals[:number])] = number * 3 * _MS
    ticks = array("q", [n * _MS for n in range(4000)])
    context = DriverContext(
        phase, host, SlotGate(LocalSlots(slots), LocalSlots(3)), loop=loop, timer=lambda call: HandTimer(host.clock, call),
        arrival_numbers=LocalCounter(cells, ARRIVALS), session_numbers=LocalCounter(cells, SESSIONS), progress=[0, 0],
        due=memoryview(due if kind is SessionTrees else ticks), sessions=memoryview(rows), max_turns=max(totals), share=slots,
    )  # fmt: skip
    host.driver = kind(None, context)
    return host.driver


def run(
    kind: type[Driver[Any]], clock: Clock, seed: int, count: int, *, failing: float = 0.0, fails_fast: bool = False,
    **limits: Any,
) -> Host:  # fmt: skip
    draw = random.Random(seed)
    host = Host(draw, clock, [random_tree(draw) for _ in range(5)], failing)
    host.fails_fast = fails_fast
    assert not [fault for one in host.entries for fault in faults(one, sum(stream.turns for stream in one))]

    async def body() -> None:
        over: list[int] = []
        driver = driven(kind, host, asyncio.get_running_loop(), slots=2, count=count, **limits)
        free = driver.over  # type: ignore[attr-defined]

        def ended(root: Session) -> None:
            host.live.discard(root.number)
            over.append(root.number)
            free(root)

        driver.over = ended  # type: ignore[attr-defined]
        driver.begin(clock.now)
        host.run(driver, lambda: driver.complete)
        assert len(over) == len(set(over)), "a tree ended twice"
        assert not host.live, "a tree keeps its slot"

    asyncio.run(body())
    return host


@pytest.mark.parametrize("kind", [BurstTrees, PacedTrees, SessionTrees])
@pytest.mark.parametrize("seed", range(20))
def test_random_trees_are_sent_whole_and_in_order(clock: Clock, kind: type[Driver[Any]], seed: int) -> None:
    host = run(kind, clock, seed, 8, session_count=8)
    assert len(host.sent) == 8
    assert all(not host.left_out(number, number % 5) for number in host.sent)
    assert len(host.numbers) == len(set(host.numbers))
    assert host.most_live <= 2


@pytest.mark.parametrize("kind", [BurstTrees, SessionTrees])
@pytest.mark.parametrize("seed", range(10))
def test_a_failed_child_releases_its_join(clock: Clock, kind: type[Driver[Any]], seed: int) -> None:
    host = run(kind, clock, seed, 6, session_count=6, failing=0.3)
    roots = [host.entries[number % 5][0] for number in host.sent]
    assert all(set(range(root.turns)) <= set(host.sent[number]) for number, root in enumerate(roots))


@pytest.mark.parametrize("kind", [BurstTrees, PacedTrees, SessionTrees])
@pytest.mark.parametrize("seed", range(10))
def test_a_failed_child_ends_its_family(
    clock: Clock, kind: type[Driver[Any]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIPERF_DAG_FAIL_FAST", "1")
    run(kind, clock, seed, 6, session_count=6, failing=0.3, fails_fast=True)
    host = run(kind, clock, seed, 6, session_count=6, failing=1.0, fails_fast=True)
    for number, sent in host.sent.items():
        streams = host.entries[number % 5]
        children = [stream for stream in streams[1:] if stream.turns > 1]
        assert all(stream.first + 1 not in sent for stream in children), "a failed child went on"
        for stream in streams:
            for branch in stream.branches:  # a child that starts others may have been ended by one of these
                alone = [streams[child] for child in branch.children if not streams[child].branches]
                failed = any(child.first in host.ended[number] for child in alone)
                went_on = branch.joins is not None and stream.first + branch.joins in sent
                assert not (failed and went_on), "a parent went on behind a failed child"


@pytest.mark.parametrize("kind", [BurstTrees, PacedTrees])
@pytest.mark.parametrize("seed", range(10))
def test_a_request_count_counts_every_request(clock: Clock, kind: type[Driver[Any]], seed: int) -> None:
    host = run(kind, clock, seed, 50, request_count=40)
    assert sum(map(len, host.sent.values())) == 40
