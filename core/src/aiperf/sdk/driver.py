"""The contract of drivers: how a worker starts its share of a phase's requests.

A schedule says when arrivals are due; a driver starts them: at their times, behind free slots, or as answers allow.  A driver
runs on a worker's measuring loop as plain callbacks.  It never awaits, blocks or logs per request.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableSequence, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

from msgspec import Struct

from aiperf.sdk.options import OptionsT
from aiperf.sdk.plan import PhasePlan

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from aiperf.sdk.trees import Stream

ARRIVALS, SESSIONS = 0, 1
"""Cells of ``DriverContext.progress``: arrivals of this shard that have passed, sessions of this shard that have started."""
NOTES = 8
"""Numbers of a worker in ``DriverContext.notes``."""
PRECISE_TIMERS = sys.platform == "linux"
"""Whether a timerfd keeps the due times.  Elsewhere loop timers do, and the report says so."""


class DriverFacts(Struct, frozen=True):
    """What the manifest says of a driver, below ``capabilities``.

    drives: the schedules that get it where they name no driver: those of ``session_starts``, those of ``due_times``, or those
    without times (``free_slots``).  Of several such drivers the one with the highest priority counts.  None: it is only named.
    trees: it drives conversations that start others (:mod:`aiperf.sdk.trees`), for data sets that have such.
    lanes: ``--concurrency`` is the number of its places, place p of worker p modulo their number, and its workers tell each
    other in ``DriverContext.notes`` what all of them need.
    schedule: the name of the only one that it serves; its options are refused in other loads.  None serves any.
    """

    drives: Literal["free_slots", "due_times", "session_starts"] | None = None
    trees: bool = False
    lanes: bool = False
    schedule: str | None = None


class Session:
    """One execution of a conversation.  All its turns share entry, model, URL and id.

    number: of the session in its phase.  entry: of the data set.  turns: how many the session makes, at most those of its
    conversation; 0 until the first request where the data set is still made.  turn: the next or current turn, from 0; the
    driver counts it up.  first, base_ns: for the driver's own use.
    prefilling: the current request holds a prefill slot.  failed: the latest request had no good answer.
    stream: of a tree, the number of the stream; its turns are those from the stream's first to *turns*, counted over the whole
    tree.  forks: other streams go on from what it says, so that its last answer is kept, too.
    answered_ns: stamp of the last byte of the latest answer, monotonic; when the kernel heard of it where it failed or was the
    session's last; 0 before.
    due_ns: when the current turn is due by its think time, monotonic; -1 where it has none.
    lane, lap: where the driver has lanes, the lane of the tree and how often its entry was begun before; in place of phase and
    number they make the marker of ``--cache-bust``.  lane -1: it has none.
    held_by: of a tree, the place of the turn of another stream for whose end the current turn waited, by a join or by the order
    of a record; -1 where it waited for none.
    limit: most output tokens of its requests, None for those of its turns.  overflowed: the latest request was longer than the
    model's context (``Driver.overflow_words``).
    script, state, collected, listen, overheard: for the kernel alone: what was said so far, the values of the last answer, the
    bytes of the answer that a later turn needs, the callback for each piece of the answer, and the start of an answer.
    kernel_ns, read_ns: stamps of the latest piece, for the kernel, too.
    """

    # More than 20 attributes: what a driver, the encoder and the sink know of a session stands in one object, which a
    # request finds without a look-up.

    __slots__ = (
        "answered_ns", "base_ns", "collected", "due_ns", "entry", "failed", "first", "forks", "held_by", "id", "kernel_ns",
        "lane", "lap", "limit", "listen", "model", "number", "overflowed", "overheard", "phase", "prefilling", "read_ns",
        "script", "state", "stream", "turn", "turns", "url",
    )  # fmt: skip

    def __init__(self, phase: int, number: int, entry: int, turns: int, model: int, url: int, identity: str) -> None:
        self.phase, self.number, self.id = phase, number, identity
        self.entry, self.turns = entry, turns
        self.model, self.url = model, url
        self.turn = self.first = self.base_ns = self.stream = 0
        self.answered_ns = self.kernel_ns = self.read_ns = 0
        self.due_ns = self.lane = self.held_by = -1
        self.lap = 0
        self.limit: int | None = None
        self.prefilling = self.forks = self.failed = self.overflowed = False
        self.script: Any = None
        self.overheard: Any = None
        self.state: dict[str, Any] = {}
        self.collected: list[bytes] = []
        self.listen: Callable[[bytes], None] | None = None

    @property
    def last(self) -> bool:
        """Whether no turn follows the current one."""
        return self.turn + 1 >= self.turns

    @property
    def goes_on(self) -> bool:
        """Whether a later turn, of this stream or of one that forks off, repeats the answer to the current one."""
        return self.forks or self.turn + 1 < self.turns


class RequestStarter(Protocol):
    """Starts sessions and their requests."""

    def entry(self, phase: PhasePlan, number: int) -> int:
        """The entry of the data set that the sampler chooses for a session."""

    def name(self, entry: int) -> str:
        """The conversation's id."""

    def turns(self, entry: int) -> int:
        """Number of turns of the entry's conversation, those of all streams."""

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        """A new session.  entry: of the data set, None lets the sampler choose.  turns: None makes all of the conversation.

        A driver may set ``turn`` before the first request: the history is then what the data set has before that turn, and
        live answers, which nobody gave, are missing.
        """

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        """Start the request of the session's current turn.

        n: number of the arrival, once per phase over all workers.  due_ns: monotonic, -1 where no time was scheduled.
        held_ns: how long the arrival waited behind its due time for a slot or an answer.  It is reported apart, so that the
        server's slowness is not taken for the client's.
        """

    def delay_ns(self, session: Session) -> int:
        """Think time before the session's current turn."""

    def streams(self, entry: int) -> Sequence[Stream]:
        """The streams of the entry's tree, without texts; () for a conversation that starts no others."""

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        """Start and end of a turn of the entry, counted over the whole tree, on the clock of its trace; None where they aren't
        recorded."""

    def child(self, parent: Session, stream: int) -> Session:
        """A session for a stream that *parent* starts, at its first turn: with the parent's entry, model, URL, number and lane,
        an id of its own, and, where it forks off, what the parent has said up to the turn behind which it
        begins.  ``turn`` as in :meth:`session`."""

    def abort_all(self) -> None:
        """End all requests in flight, as the end of a grace period does; the driver hears of each."""


class Gate(Protocol):
    """The phase's limits: session slots (``--concurrency``) and prefill slots (``--prefill-concurrency``).

    limits_prefill: whether a request needs a prefill slot.  *quiet*: the slot was only just taken; no waiter is called.
    """

    limits_prefill: bool

    def take_session(self) -> bool:
        """Take the slots of the first turn of a new session: all or none."""

    def take_turn(self) -> bool:
        """Take the slot of a turn of a session that holds its session slot."""

    def release_session(self, *, quiet: bool = False) -> None:
        """Give a session slot back."""

    def release_prefill(self, *, quiet: bool = False) -> None:
        """Give a prefill slot back; nothing happens where they are not limited."""

    def wait(self, call: Callable[[], None], *, turns: bool = False) -> None:
        """Call back while the slot that was last lacking may be free.  *turns*: and while a prefill slot may be, because turns
        wait beside a session; the callback must then send one."""

    def stop_waiting(self) -> None:
        """Cancel the callback."""


class Counter(Protocol):
    """Numbers that all workers draw from."""

    def ready(self) -> bool:
        """Whether the next number is there: at one of several sites it may not have come yet."""

    def next(self) -> int:
        """0, 1, 2, …: each number once over all workers.  Where none is ready it waits for one, and the loop with it."""


class Timer(Protocol):
    """Calls back at an absolute monotonic time, to some microseconds on Linux.  The latest ``set`` counts."""

    def set(self, at_ns: int) -> None:
        """Fire at *at_ns*; a time that has passed fires at once."""

    def close(self) -> None:
        """Fire never again."""


class DriverContext(Struct, frozen=True):
    """The share of a phase that one worker drives.

    shard, shards: the worker owns every *shards*-th arrival, or session, from *shard* on, where these are planned.
    due: when each arrival of all shards is due, in ns after the phase's start, -1 where the answers decide; int64, empty where
    the schedule paces nothing.
    sessions: entry, turns and number of the first arrival of each session, flat; int64, empty where the schedule starts none.
    arrival_numbers, session_numbers: for a driver that draws its arrivals and sessions instead of owning a share.  Those that a
    request needs are there behind the gate, with the fact ``lanes`` those of arrivals alone.
    share: slots that this worker takes before other workers had their turn, None takes any number.
    max_turns: most turns of a conversation in the data set; 2 or more where that is still made, and some may have several.
    progress: the cells ARRIVALS and SESSIONS.  They outlive the process: the worker that replaces a dead one goes on from them.
    timer: makes a timer for a callback.  seed: the run's, for what a driver draws (:mod:`aiperf.sdk.draws`).
    before: the driver of the phase before in this process, whose sessions may live on; None without one.  following: the phase
    behind this one, None behind the last.
    notes: for each worker NOTES int64, 0 at the start of the run, which outlive phases and processes.  Every worker sees all,
    and writes its own.  At several sites those of other sites are seen with the fact ``lanes`` alone, some milliseconds later;
    what a worker wrote before the end of its phase is seen when the next phase begins.  Clocks of sites differ: instants in
    notes are told as distances from the begin of the phase.
    tell: writes an object of JSON values into the journal; tables and verdicts read it (``Evidence.told``).  The ledger knows
    of unsent turns by the fields of :class:`~aiperf.sdk.trees.TreeBegin` and ``TreeEnd``.
    give_up: ends the run, for the reason in a sentence.
    """

    phase: PhasePlan
    requests: RequestStarter
    gate: Gate
    loop: AbstractEventLoop
    timer: Callable[[Callable[[], None]], Timer]
    arrival_numbers: Counter
    session_numbers: Counter
    progress: MutableSequence[int]
    due: memoryview = memoryview(b"").cast("q")
    sessions: memoryview = memoryview(b"").cast("q")
    shard: int = 0
    shards: int = 1
    share: int | None = None
    max_turns: int = 1
    seed: int = 0
    before: Driver[Any] | None = None
    following: PhasePlan | None = None
    notes: Sequence[MutableSequence[int]] = ()
    tell: Callable[[dict[str, Any]], None] = lambda _: None
    give_up: Callable[[str], None] = lambda _: None


class Driver(Generic[OptionsT]):
    """Starts a worker's share of a phase's requests; made once per phase and worker.

    The kernel calls ``begin`` once, ``request_ended`` and ``first_token`` as answers come, and ``stop`` when the phase's
    duration is over or the run ends, perhaps more than once.  A driver keeps the phase's request count, session count and
    limits, and calls ``finish`` when nothing more will be sent.  Requests in flight may end after that.

    options: the driver's own options, None where it declares none.  complete: nothing more will be sent.
    overflow_words: a failed request whose error has one of them, in small letters, was longer than the model's context: its
    outcome is ``overflowed``.
    """

    overflow_words: tuple[str, ...] = ()

    def __init__(self, options: OptionsT, context: DriverContext) -> None:
        self.options, self.context = options, context
        self.phase, self.requests, self.gate, self.loop = context.phase, context.requests, context.gate, context.loop
        self.complete = False
        self.on_complete: Callable[[], None] = lambda: None  # until the worker sets it
        self._thinking: list[tuple[int, int, Session, Callable[[Session], None]]] = []  # a heap: due, order, session, callback
        self._thoughts = count()
        self._think_timer: Timer | None = None

    def begin(self, start_ns: int) -> None:
        """Start the phase; called at, or just before, *start_ns* (monotonic)."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(start_ns)")

    def request_ended(self, session: Session) -> None:
        """The session's request is over, answered or failed, at ``session.answered_ns``.  The driver releases the session slot
        behind the last turn."""
        raise NotImplementedError(f"{type(self).__name__} must define request_ended(session)")

    def first_token(self, session: Session) -> None:
        """The session's request has its first token, or is over without one: release its prefill slot."""
        session.prefilling = False
        self.gate.release_prefill()

    def stop(self) -> None:
        """Send nothing more.  Sessions that wait for think time, a slot or a due time are dropped."""
        self._thinking.clear()
        self.finish()

    # For subclasses

    def finish(self) -> None:
        """Nothing more will be sent."""
        if not self.complete:
            self.complete = True
            if self._think_timer is not None:
                self._think_timer.close()
            self.gate.stop_waiting()
            self.on_complete()

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        """Start the session's current turn in the slots just taken; arguments as of :meth:`RequestStarter.send`.

        A turn that no schedule has a time for (-1) is due when its think time is over.
        """
        session.prefilling = self.gate.limits_prefill
        self.requests.send(session, n, session.due_ns if due_ns < 0 else due_ns, held_ns)

    def think(self, session: Session, then: Callable[[Session], None]) -> None:
        """Call *then* when the session's current turn is due by its think time, at once if it has none.

        The think time counts from the answer's last stamp, not from this call: how late the loop is delays no turn, and shows
        as slip behind ``session.due_ns``.
        """
        delay_ns = self.requests.delay_ns(session)
        self.later(session, session.answered_ns + delay_ns if delay_ns > 0 else -1, then)

    def later(self, session: Session, due_ns: int, then: Callable[[Session], None]) -> None:
        """Call *then* at *due_ns* (monotonic), at once where that has passed or is -1; the session's ``due_ns`` says so."""
        session.due_ns = due_ns
        if due_ns <= monotonic_ns():
            then(session)
            return
        heappush(self._thinking, (due_ns, next(self._thoughts), session, then))
        self._set_think_timer()

    def forget(self, session: Session) -> None:
        """Call nobody for the session, which waits for a due time or doesn't."""
        self._thinking[:] = [row for row in self._thinking if row[2] is not session]
        heapify(self._thinking)

    def _set_think_timer(self) -> None:
        if self._think_timer is None:
            self._think_timer = self.context.timer(self._wake)
        self._think_timer.set(self._thinking[0][0])

    def _wake(self) -> None:
        thinking = self._thinking
        while thinking and thinking[0][0] <= monotonic_ns():
            _, _, session, then = heappop(thinking)
            then(session)
        if thinking and not self.complete:
            self._set_think_timer()


__all__ = [
    "ARRIVALS", "NOTES", "PRECISE_TIMERS", "SESSIONS", "Counter", "Driver", "DriverContext", "Gate", "RequestStarter",
    "Session", "Timer",
]  # fmt: skip
