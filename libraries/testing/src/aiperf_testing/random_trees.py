"""Random trees, and phases of them without a wire or a real clock: every send is judged by what it had to wait for."""

from __future__ import annotations

import asyncio
import random
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiperf.sdk.driver import ARRIVALS, NOTES, SESSIONS, Driver, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Branch, Pause, Stream, TreeBuilder
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from msgspec.structs import replace

_MS = 1_000_000
_MOST_STREAMS = 24
_MOST_STEPS = 200_000
_PREFILLS = 3
"""Slots of requests that wait for their first token."""
_TICKS = 4000
"""Due times, one a ms."""


class HandClock:
    """A time that is turned by hand, and the timers that wait for it."""

    def __init__(self) -> None:
        self.now = 1
        self.timers: list[HandTimer] = []

    def read(self) -> int:
        return self.now

    def rules(self, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
        """Be the clock of the drivers of an imported package, and of what they inherit."""
        for name, module in list(sys.modules.items()):
            if (f"{name}.".startswith(f"{package}.") or name == "aiperf.sdk.driver") and hasattr(module, "monotonic_ns"):
                monkeypatch.setattr(module, "monotonic_ns", self.read)

    def turn(self) -> None:
        """Go on to the next timer that is set, and fire it."""
        due = [timer.at for timer in self.timers if timer.at]
        self.now = max(self.now + 1, min(due, default=self.now + _MS))
        for timer in list(self.timers):
            if 0 < timer.at <= self.now:
                timer.fire()


class HandTimer:
    """at: when it fires, 0 where it isn't set."""

    def __init__(self, clock: HandClock, call: Callable[[], None]) -> None:
        self._call, self.at = call, 0
        clock.timers.append(self)

    def set(self, at_ns: int) -> None:
        self.at = at_ns

    def close(self) -> None:
        self.at = 0

    def fire(self) -> None:
        self.at = 0
        self._call()


class _Growth:
    """Draws a tree; once it has its streams, it grows no further branches."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self.builder, self._count = draw, TreeBuilder(), 0

    def grow(self, depth: int) -> int:
        draw, builder = self._draw, self.builder
        turns = 0 if not depth and draw.randint(1, 10) == 1 else draw.randint(1, 4)
        number = builder.stream(f"s{self._count}", turns)
        self._count += 1
        before: tuple[int, ...] = ()
        for _ in range(0 if turns else draw.randint(1, 3)):
            pause = Pause(float(draw.randint(0, 20)), draw.choice((0.0, 0.5))) if draw.randint(0, 1) else None
            before = (builder.branch(number, Branch(self._children(depth, 2), behind=before, pause=pause)),)
        for turn in range(turns):
            while depth < 3 and self._count < _MOST_STREAMS and draw.randint(1, 10) <= 4 // (depth + 1):
                children = self._children(depth, 3)
                joins = draw.randint(turn + 1, turns - 1) if turn + 1 < turns and draw.randint(1, 10) <= 7 else None
                offsets = tuple(draw.choice((0.0, 5.0)) for _ in children) if draw.randint(1, 10) <= 3 else ()
                builder.branch(number, Branch(children, turn, joins, forks=draw.randint(1, 10) <= 3, offsets_ms=offsets))
        if turns and depth < 3 and draw.randint(1, 10) == 1:
            builder.branch(number, Branch(self._children(depth, 1)))
        return number

    def _children(self, depth: int, most: int) -> tuple[int, ...]:
        return tuple(self.grow(depth + 1) for _ in range(self._draw.randint(1, most)))


def random_tree(draw: random.Random) -> tuple[Stream, ...]:
    """A tree of one to some forty streams: joins, forks, background branches, offsets, rounds with pauses, and branches before
    the first turn."""
    growth = _Growth(draw)
    growth.grow(0)
    return growth.builder.streams()


class TreeJudge:
    """Starts requests of *entries*, answers them in a random order, and judges each send.  *failing*: share of failed answers
    of children.

    sent: places of turns, by session.  ended: those answered.  over: streams that have ended.  live: trees under way.
    most_live: most trees at a time.  numbers: of arrivals.  fails_fast: families end with a failed child.
    told: what the driver told.  waits: every turn leaves no earlier than its wait behind the answer before.
    """

    driver: Driver[Any]

    def __init__(
        self, draw: random.Random, clock: HandClock, entries: Sequence[tuple[Stream, ...]], failing: float = 0.0, *,
        fails_fast: bool = False, waits: bool = False,
    ) -> None:  # fmt: skip
        self.draw, self.clock, self.entries, self._failing, self._fails_fast = draw, clock, entries, failing, fails_fast
        self._waits, self._answered_ns = waits, dict[tuple[int, int], int]()
        self._open: list[Session] = []
        self.numbers: list[int] = []
        self.sent: dict[int, list[int]] = {}
        self.ended: dict[int, set[int]] = {}
        self.over: dict[int, set[int]] = {}
        self.live, self.most_live = set[int](), 0
        self.told: list[dict[str, Any]] = []

    # For drivers: RequestStarter

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        entry = number % len(self.entries) if entry is None else entry
        root = self.entries[entry][0]
        self.sent[number], self.ended[number], self.over[number] = [], set(), set()
        self.live.add(number)
        self.most_live = max(self.most_live, len(self.live))
        return Session(phase.index, number, entry, min(root.turns, turns or root.turns), 0, 0, f"{number}")

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return self.entries[entry]

    def entry(self, phase: PhasePlan, number: int) -> int:
        return number % len(self.entries)

    def name(self, entry: int) -> str:
        return self.entries[entry][0].id

    def turns(self, entry: int) -> int:
        return sum(stream.turns for stream in self.entries[entry])

    def abort_all(self) -> None:
        raise AssertionError("requests were ended early, and no grace period is over")

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        return None

    def child(self, parent: Session, stream: int) -> Session:
        one = self.entries[parent.entry][stream]
        child = Session(parent.phase, parent.number, parent.entry, one.end, 0, 0, f"{parent.number}/{stream}")
        child.turn, child.stream, child.first = one.first, stream, parent.first
        return child

    def delay_ns(self, session: Session) -> int:
        return (session.turn % 3) * 2 * _MS

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        streams, number, place = self.entries[session.entry], session.number, session.turn
        stream, ended, over = streams[session.stream], self.ended[number], self.over[number]
        assert number in self.live, "a request of a tree that has ended"
        assert stream.first <= place < stream.end, f"turn {place} is not of stream {session.stream}"
        assert place not in self.sent[number], "a turn was sent twice"
        assert ended.issuperset(range(stream.first, place)), "a turn before the answer before it"
        assert due_ns <= self.clock.now, "a turn before its time"
        if self._waits and place > stream.first:
            due_ns = self._answered_ns[number, place - 1] + self.delay_ns(session)
            assert due_ns <= self.clock.now, "a turn before its wait was over"
        for branch in stream.branches:
            gated = branch.joins == place - stream.first and not self._fails_fast
            assert not gated or over.issuperset(branch.children), "a gated turn before its last child's end"
        if stream.parent >= 0 and place == stream.first:
            self._judge_child(streams, session.stream, ended, over)
        self.sent[number].append(place)
        self.numbers.append(n)
        self._open.append(session)

    def _judge_child(self, streams: Sequence[Stream], number: int, ended: set[int], over: set[int]) -> None:
        parent = streams[streams[number].parent]
        branch = next(one for one in parent.branches if number in one.children)
        began = branch.after is None or parent.first + branch.after in ended
        assert began, "a child before the answer that starts it"
        for earlier in branch.behind if not self._fails_fast else ():
            assert over.issuperset(parent.branches[earlier].children), "a branch before the end of the one before it"

    # Answers

    def run(self, done: Callable[[], bool]) -> None:
        """Answer until *done*, and nothing is open."""
        for _ in range(_MOST_STEPS):
            if done() and not self._open:
                return
            if self._open and self.draw.random() < 0.7:
                self._answer(self._open.pop(self.draw.randrange(len(self._open))))
            else:
                self.clock.turn()
        raise AssertionError(f"the phase does not end: {self.sent}")

    def _answer(self, session: Session) -> None:
        self.clock.now += 1000
        session.failed = bool(session.stream) and self.draw.random() < self._failing
        self.ended[session.number].add(session.turn)
        if session.last or session.failed:
            self.over[session.number].add(session.stream)
        session.answered_ns = self._answered_ns[session.number, session.turn] = self.clock.now
        if session.prefilling:
            self.driver.first_token(session)
        self.driver.request_ended(session)

    def left_out(self, number: int) -> set[int]:
        """Turns of a session's tree that were not sent."""
        streams = self.entries[number % len(self.entries)]
        return set(range(sum(stream.turns for stream in streams))) - set(self.sent[number])


def play_random_trees(kind: Any, judge: TreeJudge, count: int, *, slots: int = 2, **limits: Any) -> TreeJudge:
    """A phase of *count* trees behind so many session slots, to its end.

    *kind*: class of the driver, without options.  It tells of a tree's end by its ``over(root)``, or else by the event
    ``tree_end``.  *limits*: of the phase.
    """
    asyncio.run(_play(kind, judge, count, slots, limits))
    return judge


async def _play(kind: Any, judge: TreeJudge, count: int, slots: int, limits: dict[str, Any]) -> None:
    over: list[int] = []

    def ended(number: int) -> None:
        judge.live.discard(number)
        over.append(number)

    def told(event: dict[str, Any]) -> None:
        judge.told.append(event)
        if event["event"] == "tree_end" and not hasattr(driver, "over"):
            ended(event["session"])

    driver = judge.driver = kind(None, replace(_context(judge, count, slots, limits), tell=told))
    if hasattr(driver, "over"):
        free = driver.over

        def freed(root: Session) -> None:
            ended(root.number)
            free(root)

        driver.over = freed
    driver.begin(judge.clock.now)
    judge.run(lambda: driver.complete)
    assert len(over) == len(set(over)), "a tree ended twice"
    assert not judge.live, "a tree keeps its slot"


def _context(judge: TreeJudge, count: int, slots: int, limits: dict[str, Any]) -> DriverContext:
    """The times are those of ticks, or with ``starts``, of sessions 3 ms one after the other."""
    starts = limits.pop("starts", False)
    phase = PhasePlan("profiling", "profiling", 0, "x", concurrency=slots, prefill_concurrency=_PREFILLS, **limits)
    cells, entries = [0, 0], judge.entries
    totals = [sum(stream.turns for stream in entries[number % len(entries)]) for number in range(count)]
    rows, due = array("q"), array("q", [-1] * sum(totals))
    for number, total in enumerate(totals):
        first = sum(totals[:number])
        rows.extend((number % len(entries), total, first))
        due[first] = number * 3 * _MS
    ticks = array("q", [n * _MS for n in range(_TICKS)])
    return DriverContext(
        phase, judge, SlotGate(LocalSlots(slots), LocalSlots(_PREFILLS)), loop=asyncio.get_running_loop(),
        timer=lambda call: HandTimer(judge.clock, call), arrival_numbers=LocalCounter(cells, ARRIVALS),
        session_numbers=LocalCounter(cells, SESSIONS), progress=[0, 0], notes=[[0] * NOTES],
        due=memoryview(due if starts else ticks), sessions=memoryview(rows), max_turns=max(totals), share=slots,
    )  # fmt: skip
