"""The contract of drivers: how a worker starts its share of a phase's requests.

A schedule says when arrivals are due; a driver starts them: at their times, behind free slots, or as answers allow.  A driver
runs on a worker's measuring loop as plain callbacks.  It never awaits, blocks or logs per request.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableSequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

from msgspec import Struct

from aiperf.sdk.options import OptionsT
from aiperf.sdk.plan import PhasePlan

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

ARRIVALS, SESSIONS = 0, 1
"""Cells of ``DriverContext.progress``: arrivals of this shard that have passed, sessions of this shard that have started."""
PRECISE_TIMERS = sys.platform == "linux"
"""Whether a timerfd keeps the due times.  Elsewhere loop timers do, and the report says so."""
_NS_PER_S = 1_000_000_000


class Session:
    """One execution of a conversation.  All its turns share entry, model, URL and id.

    number: of the session in its phase.  entry: of the data set.  turns: how many the session makes, at most those of its
    conversation; 0 until the first request where the data set is still made.  turn: the next or current turn, from 0; the
    driver counts it up.  first, base_ns: for the driver's own use.
    prefilling: the current request holds a prefill slot.
    script, state, collected, listen: for the kernel alone: what was said so far, the values of the last answer, the bytes of
    the answer that a later turn needs, and the callback for each piece of the answer.
    """

    __slots__ = (
        "base_ns", "collected", "entry", "first", "id", "listen", "model", "number", "phase", "prefilling", "script", "state",
        "turn", "turns", "url",
    )  # fmt: skip

    def __init__(self, phase: int, number: int, entry: int, turns: int, model: int, url: int, identity: str) -> None:
        self.phase, self.number, self.id = phase, number, identity
        self.entry, self.turns = entry, turns
        self.model, self.url = model, url
        self.turn = self.first = self.base_ns = 0
        self.prefilling = False
        self.script: Any = None
        self.state: dict[str, Any] = {}
        self.collected: list[bytes] = []
        self.listen: Callable[[bytes], None] | None = None

    @property
    def last(self) -> bool:
        """Whether no turn follows the current one."""
        return self.turn + 1 >= self.turns


class RequestStarter(Protocol):
    """Starts sessions and their requests."""

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        """A new session.  entry: of the data set, None lets the sampler choose.  turns: None makes all of the conversation."""

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        """Start the request of the session's current turn.

        n: number of the arrival, once per phase over all workers.  due_ns: monotonic, -1 where no time was scheduled.
        held_ns: how long the arrival waited behind its due time for a slot or an answer.  It is reported apart, so that the
        server's slowness is not taken for the client's.
        """

    def delay_ns(self, session: Session) -> int:
        """Think time before the session's current turn."""


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

    def wait(self, call: Callable[[], None]) -> None:
        """Call back while the slot that was last lacking may be free."""

    def stop_waiting(self) -> None:
        """Cancel the callback."""


class Counter(Protocol):
    """Numbers that all workers draw from."""

    def next(self) -> int:
        """0, 1, 2, …: each number once over all workers."""


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
    arrival_numbers, session_numbers: for a driver that draws its arrivals and sessions instead of owning a share.
    share: slots that this worker takes before other workers had their turn, None takes any number.
    max_turns: most turns of a conversation in the data set; 2 or more where that is still made, and some may have several.
    progress: the cells ARRIVALS and SESSIONS.  They outlive the process: the worker that replaces a dead one goes on from them.
    timer: makes a timer for a callback.
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


class Driver(Generic[OptionsT]):
    """Starts a worker's share of a phase's requests; made once per phase and worker.

    The kernel calls ``begin`` once, ``request_ended`` and ``first_token`` as answers come, and ``stop`` when the phase's
    duration is over or the run ends, perhaps more than once.  A driver keeps the phase's request count, session count and
    limits, and calls ``finish`` when nothing more will be sent.  Requests in flight may end after that.

    options: the driver's own options, None where it declares none.  complete: nothing more will be sent.
    """

    def __init__(self, options: OptionsT, context: DriverContext) -> None:
        self.options, self.context = options, context
        self.phase, self.requests, self.gate, self.loop = context.phase, context.requests, context.gate, context.loop
        self.complete = False
        self.on_complete: Callable[[], None] = lambda: None  # until the worker sets it
        self._thinking: dict[Session, TimerHandle] = {}

    def begin(self, start_ns: int) -> None:
        """Start the phase; called at, or just before, *start_ns* (monotonic)."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(start_ns)")

    def request_ended(self, session: Session) -> None:
        """The session's request is over, answered or failed.  The driver releases the session slot behind the last turn."""
        raise NotImplementedError(f"{type(self).__name__} must define request_ended(session)")

    def first_token(self, session: Session) -> None:
        """The session's request has its first token, or is over without one: release its prefill slot."""
        session.prefilling = False
        self.gate.release_prefill()

    def stop(self) -> None:
        """Send nothing more.  Sessions that wait for think time, a slot or a due time are dropped."""
        for handle in self._thinking.values():
            handle.cancel()
        self._thinking.clear()
        self.finish()

    # For subclasses

    def finish(self) -> None:
        """Nothing more will be sent."""
        if not self.complete:
            self.complete = True
            self.gate.stop_waiting()
            self.on_complete()

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        """Start the session's current turn in the slots just taken; arguments as of :meth:`RequestStarter.send`."""
        session.prefilling = self.gate.limits_prefill
        self.requests.send(session, n, due_ns, held_ns)

    def think(self, session: Session, then: Callable[[Session], None]) -> None:
        """Call *then* after the session's think time, at once if it has none."""
        delay_ns = self.requests.delay_ns(session)
        if delay_ns <= 0:
            then(session)
            return

        def wake() -> None:
            del self._thinking[session]
            then(session)

        self._thinking[session] = self.loop.call_later(delay_ns / _NS_PER_S, wake)


__all__ = [
    "ARRIVALS", "PRECISE_TIMERS", "SESSIONS", "Counter", "Driver", "DriverContext", "Gate", "RequestStarter", "Session",
    "Timer",
]  # fmt: skip
