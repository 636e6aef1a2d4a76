"""A phase of conversations that start others, for drivers that say they drive such: what leaves, behind what."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Any

from aiperf.sdk.driver import ARRIVALS, SESSIONS, Driver, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Branch, Pause, Stream, TreeBuilder
from aiperf.worker.clock import LoopTimer
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate

SESSIONS_OF_TREES = 6
"""Trees of the load."""
_PATIENCE_S = 60.0
_PAUSE_MS = 2.0
_SPARE = 500
"""Due times behind those of the turns: some find no turn ready."""


def trees() -> list[tuple[Stream, ...]]:
    """A join, a fork, an orchestrator of two rounds, and a conversation by itself."""
    joining, forking, rounds, alone = (TreeBuilder() for _ in range(4))
    joining.stream("root", 3)
    children = joining.stream("child", 2), joining.stream("other", 1)
    joining.branch(0, Branch(children, 0, 2, offsets_ms=(0.0, _PAUSE_MS)))
    forking.stream("root", 1)
    forking.branch(0, Branch((forking.stream("left", 1), forking.stream("right", 2)), 0, forks=True))
    rounds.stream("root", 0)
    first = rounds.branch(0, Branch((rounds.stream("round 1", 1),)))
    rounds.branch(0, Branch((rounds.stream("round 2", 2),), behind=(first,), pause=Pause(_PAUSE_MS)))
    alone.stream("alone", 2)
    return [joining.streams(), forking.streams(), rounds.streams(), alone.streams()]


class TreeStarter:
    """Starts requests, judges each, and answers them."""

    driver: Driver[Any]

    def __init__(self) -> None:
        self.trees = trees()
        self.numbers: list[int] = []
        self.open: list[Session] = []
        self.sent: dict[int, list[int]] = {}
        self._answered: dict[int, set[int]] = {}
        self._ended: dict[int, set[int]] = {}

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        entry = number % len(self.trees) if entry is None else entry
        root = self.trees[entry][0]
        assert number not in self.sent, f"session {number} was started twice"
        self.sent[number], self._answered[number], self._ended[number] = [], set(), set()
        return Session(phase.index, number, entry, min(root.turns, turns or root.turns), 0, 0, f"session-{number}")

    def entry(self, phase: PhasePlan, number: int) -> int:
        return number % len(self.trees)

    def name(self, entry: int) -> str:
        return self.trees[entry][0].id

    def turns(self, entry: int) -> int:
        return sum(one.turns for one in self.trees[entry])

    def abort_all(self) -> None:
        raise AssertionError("requests were ended early, and no grace period is over")

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return self.trees[entry]

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        return None

    def child(self, parent: Session, stream: int) -> Session:
        one = self.trees[parent.entry][stream]
        child = Session(parent.phase, parent.number, parent.entry, one.end, 0, 0, f"{parent.id}-{stream}")
        child.turn, child.stream, child.first = one.first, stream, parent.first
        return child

    def delay_ns(self, session: Session) -> int:
        return 0

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        number, place, streams = session.number, session.turn, self.trees[session.entry]
        stream, answered, ended = streams[session.stream], self._answered[number], self._ended[number]
        assert not self.driver.complete, "a request was sent after the driver was complete"
        assert stream.first <= place < stream.end, f"turn {place} is not of stream {session.stream}"
        assert place not in self.sent[number], f"turn {place} was sent twice"
        assert all(earlier in answered for earlier in range(stream.first, place)), "a turn left before the answer before it"
        assert due_ns == -1 or monotonic_ns() >= due_ns, "a request was sent before its due time"
        for branch in stream.branches:
            waits = branch.joins is not None and branch.joins == place - stream.first
            assert not waits or ended.issuperset(branch.children), "a turn left before the last child that it waits for"
        if stream.parent >= 0 and place == stream.first:
            parent = streams[stream.parent]
            branch = next(one for one in parent.branches if session.stream in one.children)
            began = branch.after is None or parent.first + branch.after in answered
            assert began, "a child began before the answer that starts it"
            before = [parent.branches[earlier].children for earlier in branch.behind]
            assert all(ended.issuperset(children) for children in before), "a branch began before the one that it waits for"
        self.sent[number].append(place)
        self.numbers.append(n)
        self.open.append(session)

    def answer_all(self) -> None:
        """Answer every open request, the latest first."""
        for session in [self.open.pop() for _ in range(len(self.open))]:
            self._answered[session.number].add(session.turn)
            if session.last:
                self._ended[session.number].add(session.stream)
            if session.prefilling:
                self.driver.first_token(session)
            session.answered_ns = monotonic_ns()
            self.driver.request_ended(session)

    def left_out(self) -> dict[int, set[int]]:
        """Turns that were not sent, by session."""
        every = {number: sum(one.turns for one in self.trees[number % len(self.trees)]) for number in self.sent}
        return {number: left for number, turns in every.items() if (left := set(range(turns)) - set(self.sent[number]))}


async def play_trees(make: type[Driver[Any]], options: Any, slots: LocalSlots, prefills: LocalSlots) -> TreeStarter:
    """A phase of SESSIONS_OF_TREES sessions behind these slots, whole."""
    starter = TreeStarter()
    turns = [sum(one.turns for one in starter.trees[number % len(starter.trees)]) for number in range(SESSIONS_OF_TREES)]
    rows, due = array("q"), array("q", [n * 1_000_000 for n in range(sum(turns) + _SPARE)])
    for number, count in enumerate(turns):
        rows.extend((number % len(starter.trees), count, sum(turns[:number])))
    phase = PhasePlan("profiling", "profiling", 0, "contract", session_count=SESSIONS_OF_TREES, concurrency=2, rate=1000.0,
                      prefill_concurrency=2)  # fmt: skip
    cells, loop = [0, 0], asyncio.get_running_loop()
    context = DriverContext(
        phase, starter, SlotGate(slots, prefills), loop, partial(LoopTimer, loop), LocalCounter(cells, ARRIVALS),
        LocalCounter(cells, SESSIONS), [0, 0], due=memoryview(due), sessions=memoryview(rows), share=2, max_turns=max(turns),
    )  # fmt: skip
    driver = starter.driver = make(options, context)
    driver.begin(monotonic_ns())
    await _until(starter, lambda: driver.complete and not starter.open)
    return starter


async def _until(starter: TreeStarter, condition: Callable[[], bool]) -> None:
    until = monotonic_ns() + _PATIENCE_S * 1e9
    while not condition():
        assert monotonic_ns() < until, f"the phase does not end; sent so far: {starter.sent}"
        await asyncio.sleep(0.0005)
        starter.answer_all()
