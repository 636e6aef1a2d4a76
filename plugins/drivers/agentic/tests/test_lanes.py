"""Lanes in made-up time: the example of the specification, and each rule by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count, pairwise
from typing import Any, NamedTuple

import aiperf_driver_agentic.alarms
import aiperf_driver_agentic.caps
import aiperf_driver_agentic.driver
import aiperf_driver_agentic.grove
import aiperf_driver_agentic.warmup
import pytest
from aiperf.sdk.driver import NOTES, DriverContext, Session
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Branch, Stream, TreeBuilder
from aiperf.worker.slots import LocalCounter, LocalSlots, SlotGate
from aiperf_driver_agentic.driver import AgenticDriver
from aiperf_driver_agentic.options import AgenticOptions

S = 1_000_000_000
_WAY_NS = 20_000_000
"""From a site to another one."""
_MODULES = (
    aiperf_driver_agentic.alarms, aiperf_driver_agentic.caps, aiperf_driver_agentic.driver, aiperf_driver_agentic.grove,
    aiperf_driver_agentic.warmup,
)  # fmt: skip


class Trace(NamedTuple):
    """A recorded trace.  times: start and end of each request in s.  delays: think time before each, in s."""

    name: str
    streams: tuple[Stream, ...]
    times: tuple[tuple[float, float], ...] | None
    delays: tuple[float, ...]


class Sent(NamedTuple):
    """What the server saw: when, in s; the phase, the lane, the trace, the stream, the turn in it; the place that held it."""

    at_s: float
    due_s: float
    phase: int
    lane: int
    trace: str
    stream: int
    turn: int
    limit: int | None
    id: str
    lap: int
    held_by: int


def trace(name: str, root: Sequence[float], children: Sequence[tuple[int, int | None, Sequence[float]]] = (),
          took_s: float = 1.0) -> Trace:  # fmt: skip
    """A root with requests at these times, and children (spawning turn, joining turn, times); each request took *took_s*."""
    builder = TreeBuilder()
    builder.stream(name, len(root))
    for number, (after, joins, starts) in enumerate(children):
        child = builder.stream(f"{name}::sa:a{number}", len(starts))
        builder.branch(0, Branch((child,), after, joins, offsets_ms=(0.0,), start_ms=starts[0] * 1000))
    rows = (root, *(starts for _, _, starts in children))
    times = tuple((start, start + took_s) for starts in rows for start in starts)
    delays = tuple(delay for starts in rows for delay in (0.0, *(b - a - took_s for a, b in pairwise(starts))))
    return Trace(name, builder.streams(), times, delays)


class _FakeTimer:
    def __init__(self, world: World, call: Callable[[], None]) -> None:
        self._world, self._call, self._version = world, call, 0

    def set(self, at_ns: int) -> None:
        self._version += 1
        version = self._version
        self._world.later(at_ns, lambda: self._call() if version == self._version else None)

    def close(self) -> None:
        self._version += 1


class _LateCounter:
    """Numbers that come late where the world says so."""

    def __init__(self, world: World, counter: LocalCounter) -> None:
        self._world, self._counter = world, counter
        self._asked_ns: int | None = None

    def ready(self) -> bool:
        if self._asked_ns is None:
            self._asked_ns = self._world.now_ns
        return self._world.now_ns - self._asked_ns >= self._world.late_ns

    def next(self) -> int:
        assert self.ready(), "a number was drawn that is not there"
        self._asked_ns = None
        return self._counter.next()


class Answering:
    """The request starter of a worker."""

    driver: AgenticDriver

    def __init__(self, world: World) -> None:
        self._world = world
        self.open: dict[str, Session] = {}

    def entry(self, phase: PhasePlan, number: int) -> int:
        return number % len(self._world.traces)

    def name(self, entry: int) -> str:
        return self._world.traces[entry].name

    def turns(self, entry: int) -> int:
        return self._world.traces[entry].streams[-1].end

    def streams(self, entry: int) -> tuple[Stream, ...]:
        return self._world.traces[entry].streams

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        times = self._world.traces[entry].times
        return None if times is None else (round(times[turn][0] * S), round(times[turn][1] * S))

    def delay_ns(self, session: Session) -> int:
        return round(self._world.traces[session.entry].delays[session.turn] * S)

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        entry = self.entry(phase, number) if entry is None else entry
        return Session(phase.index, number, entry, self.streams(entry)[0].turns, 0, 0, f"{number}")

    def child(self, parent: Session, stream: int) -> Session:
        one = self.streams(parent.entry)[stream]
        child = Session(parent.phase, parent.number, parent.entry, one.end, 0, 0, f"{parent.number}-{stream}")
        child.turn, child.stream, child.lane, child.lap, child.limit = one.first, stream, parent.lane, parent.lap, parent.limit
        return child

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        world, streams = self._world, self.streams(session.entry)
        assert not self.driver.complete, "a request was sent behind the end of sending"
        assert session.id not in self.open, "a stream has two requests in flight"
        turn = session.turn - streams[session.stream].first
        due_s = (due_ns - world.skew_ns) / S if due_ns >= 0 else -1.0
        sent = Sent(world.now_ns / S, due_s, session.phase, session.lane, world.traces[session.entry].name,
                    session.stream, turn, session.limit, session.id, session.lap, session.held_by)  # fmt: skip
        world.sent.append(sent)
        self.open[session.id] = session
        world.most_open = max(world.most_open, len({one.number for one in self._all_open()}))
        takes_s, outcome = world.answer(sent)
        world.later(world.now_ns + world.skew_ns + round(takes_s * S), lambda: self._end(session, outcome))

    def _all_open(self) -> list[Session]:
        return [session for one in self._world.starters for session in one.open.values()]

    def abort_all(self) -> None:
        self.driver.stop()
        for session in list(self.open.values()):
            self._end(session, "aborted")

    def _end(self, session: Session, outcome: str) -> None:
        if self.open.pop(session.id, None) is None:
            return
        session.answered_ns = self._world.now_ns + self._world.skew_ns
        session.failed, session.overflowed = outcome != "good", outcome == "overflowed"
        self._world.ended.append((self._world.now_ns / S, session.id, session.turn))
        self.driver.request_ended(session)


class World:
    """A run over *traces*, whose answers take what *answer* says, in s, and end as it says.

    *ahead_s*: each worker is at a site of its own, whose clock is so far ahead, and which hears of the others late.  Of a root
    to come, it knows the number *late_s* after it asked for it.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, traces: Sequence[Trace], options: AgenticOptions, *, lanes: int = 2,
        workers: int = 1, ahead_s: Sequence[float] = (), late_s: float = 0.0,
        answer: Callable[[Sent], tuple[float, str]] = lambda _: (0.3, "good"), **profiling: Any,
    ) -> None:  # fmt: skip
        self.now_ns = 1000 * S
        for module in _MODULES:
            monkeypatch.setattr(module, "monotonic_ns", lambda: self.now_ns + self.skew_ns)
        self.skew_ns, self.late_ns = 0, round(late_s * S)
        self._skews_ns = [round(each * S) for each in ahead_s] or [0] * workers
        self._apart = bool(ahead_s)
        self.traces, self.answer, self._options, self._workers = traces, answer, options, workers
        self.sent: list[Sent] = []
        self.ended: list[tuple[float, str, int]] = []
        self.told: list[dict[str, Any]] = []
        self.given_up: list[str] = []
        self.most_open = 0
        self.starters = [Answering(self) for _ in range(workers)]
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        common: dict[str, Any] = {"schedule": "agentic_replay", "concurrency": lanes, "entries": len(traces)}
        self.phases = (
            PhasePlan("warmup", "warmup", 0, lives_on=True, **common),
            PhasePlan("profiling", "profiling", 1, **common, **profiling),
        )
        self._cells = [0, 0]
        shared = [[0] * NOTES for _ in range(workers)]
        self._notes = [[[0] * NOTES for _ in range(workers)] if ahead_s else shared for _ in range(workers)]
        self._before: list[AgenticDriver | None] = [None] * workers
        self.begun_s = [0.0, 0.0]

    def later(self, at_ns: int, call: Callable[[], None]) -> None:
        """Call at an instant of the clock of the worker that calls this, or of the run's, and with that clock."""
        skew_ns = self.skew_ns
        heappush(self._events, (max(at_ns - skew_ns, self.now_ns), next(self._order), lambda: self._by(skew_ns, call)))

    def _by(self, skew_ns: int, call: Callable[[], None]) -> None:
        self.skew_ns = skew_ns
        call()
        self.skew_ns = 0

    def _relay(self) -> None:
        """What each worker has told comes to the others later."""
        for shard, notes in enumerate(self._notes):
            self.later(self.now_ns + _WAY_NS, partial(self._take, shard, notes[shard][:]))
        self.later(self.now_ns + _WAY_NS // 2, self._relay)

    def _take(self, shard: int, told: list[int]) -> None:
        for other, notes in enumerate(self._notes):
            if other != shard:
                notes[shard][:] = told

    def run(self, *, for_s: float | None = None, skip_warmup: bool = False, warmup_s: float | None = None) -> World:
        """Both phases; profiling for so long, the warmup alone where it is stopped behind *warmup_s*."""
        for phase in self.phases[skip_warmup : 1 if warmup_s is not None else None]:
            self._phase(phase, for_s if phase.index else warmup_s)
            if self.given_up:
                break
        return self

    def _phase(self, phase: PhasePlan, for_s: float | None) -> None:
        loop, arrivals = asyncio.new_event_loop(), [0, 0]
        drivers = []
        for shard, starter in enumerate(self.starters):
            context = DriverContext(
                phase, starter, SlotGate(LocalSlots(None)), loop, partial(_FakeTimer, self), LocalCounter(arrivals, 0),
                _LateCounter(self, LocalCounter(self._cells, 1)), [0, 0], shard=shard, shards=self._workers, seed=42,
                before=self._before[shard], notes=self._notes[shard], tell=self.told.append, give_up=self.given_up.append,
                following=self.phases[1] if not phase.index else None,
            )  # fmt: skip
            self.skew_ns = self._skews_ns[shard]
            driver = starter.driver = AgenticDriver(self._options, context)
            drivers.append(driver)
            self.skew_ns = 0
            self._before[shard] = driver
        loop.close()
        start_ns = self.now_ns + S // 100
        self.begun_s[phase.index] = start_ns / S
        for driver, skew_ns in zip(drivers, self._skews_ns, strict=True):
            self._by(skew_ns, partial(driver.begin, start_ns + skew_ns))
        if self._apart:
            self._relay()
        if for_s is not None:
            for driver in drivers:
                self.later(start_ns + round(for_s * S), driver.stop)
        while not all(driver.complete for driver in drivers) or any(starter.open for starter in self.starters):
            assert self._events, f"the phase {phase.name} does not end; sent: {self.sent}"
            at_ns, _, call = heappop(self._events)
            assert at_ns < self.now_ns + 100_000 * S
            self.now_ns = max(self.now_ns, at_ns)
            call()
            if self.given_up:
                for driver in drivers:
                    driver.stop()
        self._events.clear()
        for shard, notes in enumerate(self._notes):  # the run hears of the end of a phase behind these
            self._take(shard, notes[shard][:])


FOUR = [trace(f"tr{at}", [0, 4, 8, 12, 16, 20], [(1, 3, [5.5, 8])]) for at in range(4)]


def whens(world: World, phase: int) -> list[tuple[float, str, int, int]]:
    """When a phase's requests left after its begin, in s; trace, stream and turn."""
    begun_s = world.begun_s[phase]
    return [(round(one.at_s - begun_s, 3), one.trace, one.stream, one.turn) for one in world.sent if one.phase == phase]


def test_the_example_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions(requests_per_lane=2)).run(for_s=20)
    assert whens(world, 0) == [
        (0.0, "tr1", 0, 1), (1.5, "tr1", 1, 0), (3.411, "tr0", 0, 3),
        (3.711, "tr0", 0, 4), (3.711, "tr1", 0, 2), (3.711, "tr1", 1, 1), (4.011, "tr0", 0, 5),
    ]  # fmt: skip
    assert whens(world, 1)[:10] == [
        (0.0, "tr2", 0, 0), (3.3, "tr2", 0, 1), (3.6, "tr2", 1, 0), (4.486, "tr1", 0, 3), (5.4, "tr2", 1, 1),
        (6.6, "tr2", 0, 2), (7.786, "tr1", 0, 4), (9.9, "tr2", 0, 3), (11.086, "tr1", 0, 5), (11.386, "tr3", 0, 0),
    ]  # fmt: skip
    assert (16.8, "tr0", 0, 0) in whens(world, 1)
    assert {(one.phase, one.limit) for one in world.sent} == {(0, 1), (1, None)}
    tr1 = {one.id for one in world.sent if one.trace == "tr1" and one.stream == 0}
    assert len(tr1) == 1, "a session that lives on has one id"
    assert {(one.trace, one.lane, one.lap) for one in world.sent} == {
        ("tr0", 0, 0), ("tr1", 1, 0), ("tr2", 0, 0), ("tr3", 1, 0), ("tr0", 0, 1),
    }  # fmt: skip


@pytest.mark.parametrize("options", [
    AgenticOptions(), AgenticOptions(requests_per_lane=2), AgenticOptions(requests_per_lane=2, system_gap_cap_s=1.0),
    AgenticOptions(burst=True, system_gap_cap_s=2.0),
])  # fmt: skip
def test_workers_at_sites_send_when_those_of_one_machine_do(monkeypatch: pytest.MonkeyPatch, options: AgenticOptions) -> None:
    here = World(monkeypatch, FOUR, options, workers=2, session_count=4).run()
    there = World(monkeypatch, FOUR, options, workers=2, session_count=4, ahead_s=(0.0, -900.0)).run()
    assert not there.given_up
    for phase in (0, 1):
        assert sorted(row[1:] for row in whens(there, phase)) == sorted(row[1:] for row in whens(here, phase))
        local = {row[1:]: row[0] for row in whens(here, phase)}
        late_s = [row[0] - local[row[1:]] for row in whens(there, phase)]
        assert max(map(abs, late_s)) < 0.1, "a few ways behind"
    assert all(one.due_s < 0 or one.at_s - one.due_s < 1e-6 for one in there.sent), "nothing leaves behind its due time"


def test_a_lane_waits_for_the_number_of_its_next_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    soon, late = (
        World(monkeypatch, FOUR, AgenticOptions(), session_count=6, late_s=each).run() for each in (0.0, 0.05)
    )  # fmt: skip
    assert sorted(row[1:] for row in whens(soon, 1)) == sorted(row[1:] for row in whens(late, 1))
    begun = {one.id: one.at_s for one in late.sent if one.turn == 0 and one.stream == 0 and one.lap + int(one.id) > 1}
    assert len(begun) == 4


def test_the_first_worker_with_a_lane_decides_on_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker 0 is through long before the others, and worker 2 has no lane."""
    short, long = trace("short", [0, 0.1, 0.2]), trace("long", [0, 100, 200, 300])
    options = AgenticOptions(system_gap_cap_s=1.0, start_min_ratio=0.0, start_max_ratio=0.0)
    world = World(monkeypatch, [short, long], options, workers=3, session_count=2).run()
    starts = [row[0] for row in whens(world, 1) if row[1] == "long"]
    assert len(starts) == 4 and all(later - earlier < 1.4 for earlier, later in pairwise(starts))


def test_the_cuts_are_those_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions()).run(for_s=1)
    begun = [each for each in world.told if each["event"] == "tree"]
    shares = [each["cut"][0] for each in begun]
    assert [round(20 * share, 3) for share in shares] == [12.103, 7.514]
    assert [each["cut"][1] for each in begun] == [[0], [0, 1]]


@pytest.mark.parametrize("takes_s", [0.3, 3.5])
def test_a_child_that_overlapped_its_spawning_turn_begins_beside_it(monkeypatch: pytest.MonkeyPatch, takes_s: float) -> None:
    traces = [trace("a", [0, 10, 20], [(0, 1, [2]), (0, 2, [6.5])], took_s=5)]
    world = World(monkeypatch, traces, AgenticOptions(), lanes=1, answer=lambda _: (takes_s, "good"))
    assert sorted(whens(world.run(skip_warmup=True, for_s=5), 1)) == [
        (0.0, "a", 0, 0), *sorted([(2.0, "a", 1, 0), (takes_s, "a", 2, 0)]),
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_each_tree_is_the_same_on_any_number_of_workers(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    def trees(count: int) -> dict[tuple[int, str], list[tuple[int, int, int]]]:
        world = World(monkeypatch, FOUR, AgenticOptions(requests_per_lane=3), lanes=5, workers=count).run(for_s=12)
        found: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
        for one in world.sent:
            if int(one.id.partition("-")[0]) < 5:  # the lanes' first trees, cut
                found.setdefault((one.lane, one.trace), []).append((one.phase, one.stream, one.turn))
        return {name: sorted(rows) for name, rows in found.items()}

    assert trees(workers) == trees(1)


def test_lanes_never_hold_more_trees_than_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions(), lanes=3, workers=2).run(for_s=200)
    assert 1 <= world.most_open <= 3
    numbers = [int(one.id) for one in world.sent if one.stream == 0 and one.turn == 0 and one.phase]
    assert sorted(numbers) == list(range(3, 3 + len(numbers))), "each root is taken once, in the cursor's order"


def test_the_first_request_of_profiling_leaves_at_once_and_spacing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [trace("a", [0, 10, 20, 30, 40]), trace("b", [0, 3, 20, 33, 40])]
    world = World(monkeypatch, traces, AgenticOptions(start_min_ratio=0.5, start_max_ratio=0.5)).run(for_s=5)
    assert whens(world, 1) == [(0.0, "a", 0, 2), (0.0, "b", 0, 2)]
    later = World(monkeypatch, [trace("a", [0, 10, 21, 40]), trace("b", [0, 3, 24, 40])],
                  AgenticOptions(start_min_ratio=0.5, start_max_ratio=0.5)).run(for_s=5)  # fmt: skip
    assert whens(later, 1) == [(0.0, "a", 0, 2), (3.0, "b", 0, 2)]
    burst = World(monkeypatch, later.traces, AgenticOptions(start_min_ratio=0.5, start_max_ratio=0.5, burst=True)).run(for_s=5)
    assert whens(burst, 1) == [(0.0, "a", 0, 2), (0.0, "b", 0, 2)]
    assert [at for at, *_ in whens(burst, 0)] == [0.0, 0.0]


def test_a_gated_turn_leaves_at_the_later_of_its_delay_and_the_last_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def child_takes(seconds: float) -> tuple[float, int]:
        world = World(monkeypatch, [trace("t", [0, 4, 8], [(0, 2, [3.5])])], AgenticOptions(), lanes=1,
                      answer=lambda one: (seconds if one.stream else 0.5, "good"))  # fmt: skip
        world.run(for_s=30, skip_warmup=True)
        held_by = next(one.held_by for one in world.sent if (one.stream, one.turn) == (0, 2))
        return next(at for at, _, stream, turn in whens(world, 1) if (stream, turn) == (0, 2)), held_by

    # Turn 0 from 0 to 0.5, turn 1 behind its delay of 3 from 3.5 to 4, turn 2 behind another 3; the child begins at 0.5.
    assert child_takes(1.0) == (7.0, -1)
    assert child_takes(9.0) == (9.5, 3), "its place is behind the root's three"


def test_a_request_waits_for_what_had_returned_when_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    # The child's only request ended at 3, before the root's turn 1 at 4; nobody joins it.
    world = World(monkeypatch, [trace("t", [0, 4, 8], [(0, None, [2])])], AgenticOptions(), lanes=1,
                  answer=lambda one: (6.0 if one.stream else 0.5, "good"))  # fmt: skip
    world.run(for_s=30, skip_warmup=True)
    assert whens(world, 1)[:3] == [(0.0, "t", 0, 0), (0.5, "t", 1, 0), (6.5, "t", 0, 1)]
    assert world.sent[2].due_s - world.sent[0].due_s == pytest.approx(6.5), "what held it moves its due time"
    assert [one.held_by for one in world.sent[:4]] == [-1, -1, 3, -1]


def test_overlapping_requests_add_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, [trace("t", [0, 4, 8], [(0, None, [3.5])])], AgenticOptions(), lanes=1,
                  answer=lambda one: (60.0 if one.stream else 0.5, "good"))  # fmt: skip
    world.run(for_s=30, skip_warmup=True)
    assert [at for at, _, stream, _ in whens(world, 1) if not stream] == [0.0, 3.5]  # turn 2 began after its end
    assert world.told[-2]["fates"] == [(0, 2, "truncated")]


def test_the_trace_cap_moves_all_times_of_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    long = trace("t", [0, 100, 104, 300])
    world = World(monkeypatch, [long], AgenticOptions(trace_gap_cap_s=5.0), lanes=1).run(for_s=60, skip_warmup=True)
    assert whens(world, 1) == [(0.0, "t", 0, 0), (5.3, "t", 0, 1), (8.6, "t", 0, 2), (13.9, "t", 0, 3), (14.2, "t", 0, 0)] + [
        (at, "t", 0, turn) for at, turn in ((19.5, 1), (22.8, 2), (28.1, 3), (28.4, 0), (33.7, 1), (37.0, 2), (42.3, 3),
                                            (42.6, 0), (47.9, 1), (51.2, 2), (56.5, 3), (56.8, 0))
    ]  # fmt: skip
    lanes = world.told[-1]
    assert lanes["shifts"]["trace"] == 8 and lanes["shifts"]["system"] == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_the_system_cap_moves_the_times_of_all_lanes(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    traces = [trace("a", [0, 100, 200]), trace("b", [0, 130, 200])]
    world = World(monkeypatch, traces, AgenticOptions(system_gap_cap_s=10.0), workers=workers)
    world.run(for_s=60, skip_warmup=True)
    assert whens(world, 1)[:4] == [(0.0, "a", 0, 0), (0.0, "b", 0, 0), (10.3, "a", 0, 1), (20.6, "b", 0, 1)]
    assert world.told[-1]["shifts"]["trace"] == 0


def test_a_failed_primer_of_a_root_ends_the_run_with_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(one: Sent) -> tuple[float, str]:
        return 0.3, "bad" if one.trace == "tr1" and not one.stream else "good"

    world = World(monkeypatch, FOUR, AgenticOptions(), answer=answer)
    world.run(for_s=5)
    assert world.given_up == ["the warmup of lane 1 failed: the request of turn 1 of trace tr1 failed"]
    assert {one.phase for one in world.sent} == {0}


def test_a_failed_primer_of_a_child_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(one: Sent) -> tuple[float, str]:
        return 0.3, "bad" if one.stream and not one.phase else "good"

    world = World(monkeypatch, FOUR, AgenticOptions(), answer=answer)
    world.run(for_s=5)
    assert not world.given_up and ("tr1", 1, 1) in {(one.trace, one.stream, one.turn) for one in world.sent if one.phase}


def test_warmup_answers_that_take_too_long_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions(warmup_grace_s=2.0), answer=lambda _: (500.0, "good")).run(for_s=5)
    assert len(world.given_up) == 2 and "tr0" in world.given_up[0] + world.given_up[1]


def test_an_overflow_ends_its_stream_and_releases_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, [trace("t", [0, 4, 8, 12], [(0, 2, [1.5, 3])])], AgenticOptions(), lanes=1,
                  answer=lambda one: (0.5, "overflowed" if one.stream else "good"))  # fmt: skip
    world.run(for_s=11.5, skip_warmup=True)
    assert [(stream, turn) for _, _, stream, turn in whens(world, 1)] == [(0, 0), (1, 0), (0, 1), (0, 2), (0, 3), (0, 0)]
    assert next(each for each in world.told if each["event"] == "tree_end")["fates"] == [(1, 3 + 2, "overflowed")]
    assert world.told[-1]["overflows"] == 1


def test_an_overflow_of_the_root_lets_its_children_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, [trace("t", [0, 4, 8, 12], [(0, 3, [1.5, 20]), (2, None, [9])])], AgenticOptions(), lanes=1,
                  answer=lambda one: (0.5, "overflowed" if (one.stream, one.turn) == (0, 1) else "good"))  # fmt: skip
    world.run(for_s=30, skip_warmup=True)
    assert [(stream, turn) for _, _, stream, turn in whens(world, 1)][:5] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0)]
    fates = next(each for each in world.told if each["event"] == "tree_end")["fates"]
    assert fates == [(0, 2, "overflowed"), (2, 6, "released")]


def test_a_trace_that_can_not_be_cut_gives_its_lane_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    # All that is left of the first is a turn that waits for a child, and of the child nothing.
    one_turn = trace("short", [0])._replace(times=None)
    world = World(monkeypatch, [one_turn, trace("long", [0, 4, 8, 12, 16])], AgenticOptions(), lanes=1).run(for_s=3)
    assert {one.trace for one in world.sent} == {"long"}
    assert next(each["session"] for each in world.told if each["event"] == "tree") == 1


def test_a_run_of_traces_that_can_not_be_cut_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = trace("t", [0])._replace(times=None)
    world = World(monkeypatch, [alone, alone], AgenticOptions()).run(for_s=30)
    assert world.sent == [] and len(world.given_up) == 1
    assert world.given_up[0].startswith("no lane begins: of every trace nothing is left behind its cut")


def test_a_trace_without_times_is_cut_behind_one_of_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    timeless = trace("t", [0, 1, 2, 3, 4, 5, 6, 7])._replace(times=None, delays=(0.0,) * 8)
    world = World(monkeypatch, [timeless], AgenticOptions(), lanes=1).run(for_s=1)
    (primer,) = [one for one in world.sent if not one.phase]
    assert 2 <= primer.turn <= 6
    assert next(one.turn for one in world.sent if one.phase) == primer.turn + 1


def test_a_worker_in_the_place_of_a_dead_one_begins_other_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions()).run(for_s=5, skip_warmup=True)
    assert [(one.trace, one.turn) for one in world.sent[:2]] == [("tr2", 0), ("tr3", 0)]


def test_a_count_of_sessions_ends_the_phase_with_the_last_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions(), session_count=3).run()
    roots = [one for one in world.sent if one.stream == 0]
    assert {int(one.id) for one in roots} == {0, 1, 2}
    assert all(each["fates"] == [] for each in world.told if each["event"] == "tree_end")


@pytest.mark.parametrize("outcome", ["good", "failed", "overflowed"])
@pytest.mark.parametrize("for_s", [0.5, 12, 60])
def test_each_turn_ahead_is_sent_or_has_a_fate(monkeypatch: pytest.MonkeyPatch, outcome: str, for_s: float) -> None:
    def answer(sent: Sent) -> tuple[float, str]:
        return 0.3, outcome if sent.phase and (sent.stream or outcome == "overflowed") and sent.turn else "good"

    world = World(monkeypatch, FOUR, AgenticOptions(requests_per_lane=4), lanes=3, answer=answer).run(for_s=for_s)
    streams = FOUR[0].streams
    ends = {each["session"]: each for each in world.told if each["event"] == "tree_end"}
    begins = [each for each in world.told if each["event"] == "tree"]
    assert len(begins) == len(ends) > 2
    for begin in begins:
        number = str(begin["session"])
        sent = [streams[one.stream].first + one.turn for one in world.sent if one.id.partition("-")[0] == number]
        unsent = [place for stream, first, _ in ends[begin["session"]]["fates"] for place in range(first, streams[stream].end)]
        rows = [(0, 0), (1, 6)] if begin["ahead"] is None else begin["ahead"]
        ahead = [place for stream, first in rows for place in range(first, streams[stream].end)]
        assert sorted(sent + unsent) == sorted(ahead)


@pytest.mark.parametrize("ends", ["stopped", "given up"])
def test_fates_are_told_where_the_run_ends_in_warmup(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    bad = ends == "given up"
    world = World(monkeypatch, FOUR, AgenticOptions(), answer=lambda _: (0.3, "failed" if bad else "good"))
    world.run(warmup_s=None if bad else 2)
    fates = {each["session"]: each["fates"] for each in world.told if each["event"] == "tree_end"}
    assert {each["session"] for each in world.told if each["event"] == "tree"} == fates.keys() == {0, 1}
    assert {why for rows in fates.values() for _, _, why in rows} == {"truncated"}


def test_requests_of_a_stream_follow_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FOUR, AgenticOptions(requests_per_lane=4), lanes=3).run(for_s=60)
    for identity in {one.id for one in world.sent}:
        ends = [at for at, ended, _ in world.ended if ended == identity]
        sends = [one.at_s for one in world.sent if one.id == identity]
        assert all(sent >= end for end, sent in zip(ends, sends[1:], strict=False))
        turns = [one.turn for one in world.sent if one.id == identity]
        assert all(later == earlier + 1 for earlier, later in pairwise(turns))
