"""The contract of scheduling modes: which arrival is due when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

from aiperf.sdk.plan import PhasePlan, Plan

if TYPE_CHECKING:
    from aiperf.sdk.arrivals import GapFunction
    from aiperf.sdk.columns import Ints
    from aiperf.sdk.ramp import Ramp


FREE_SLOTS: Literal["free_slots"] = "free_slots"
RATE: Literal["rate"] = "rate"
TRACE: Literal["trace"] = "trace"
USERS: Literal["users"] = "users"
"""What a load follows."""


class ScheduleFacts(Struct, frozen=True):
    """What the manifest says of a schedule, below ``capabilities``.

    follows: what says when its requests start, and so which load options go with ``--scheduling-mode`` and its name:
    ``free_slots`` (no times at all; a concurrency), ``rate`` (a request rate and an arrival pattern), ``trace`` (recorded
    times) or ``users`` (a rate over all users).  None is another thing: a rate may be given, and need not.
    warms: a warmup belongs to it, by the same schedule and with the same entries, whose sessions live on.
    """

    follows: Literal["free_slots", "rate", "trace", "users"] | None = None
    warms: bool = False


class Conversations(Protocol):
    """The entries of a phase, numbered from 0, as a schedule sees them."""

    count: int

    def entry(self, session: int) -> int:
        """The entry that the sampler gives to a session."""

    def turns(self, entry: int) -> int: ...

    def timestamp_ns(self, entry: int, turn: int) -> int:
        """Recorded time of the turn, -1 where the trace has none."""


class ScheduleContext(Struct, frozen=True):
    """The arguments of a schedule.

    gaps: the phase's arrival pattern, None in modes without one.  ramp: the curve of rising limits or rates, None without.
    data: the phase's conversations; None before the data set exists.  source: the input file, for messages.
    once: each conversation is for one session; an average below what the schedule has in mind is no mistake of the user's.
    plan: of the run, for a schedule that refuses other settings; None where there is none.
    """

    seed: int
    phase: PhasePlan
    gaps: GapFunction | None = None
    ramp: Ramp | None = None
    data: Conversations | None = None
    source: str | None = None
    once: bool = False
    plan: Plan | None = None


class Schedule(Protocol):
    """Arithmetic: the due time of each arrival.  It never sleeps and reads no clock.

    *paced*: arrivals have due times; else they follow free slots.
    """

    paced: bool

    def __init__(self, context: ScheduleContext) -> None: ...

    def due_block(self, first: int, count: int) -> Ints:
        """Due times of arrivals *first* to *first* + *count* - 1, in ns after the phase's start, never decreasing.

        int64.  Fewer than *count* values end the schedule.
        """


class SessionStarts(Struct, frozen=True):
    """Sessions in the order of their starts; each field is an int64 array.

    due_ns: due times of the first turns after the phase's start, never decreasing.  entry: number within the phase's entries.
    turns: number of turns that the session makes, at least 1.
    """

    due_ns: Ints
    entry: Ints
    turns: Ints


@runtime_checkable
class DrivenSchedule(Schedule, Protocol):
    """A schedule that names its driver.  Others have the one that declares it drives such schedules
    (:class:`aiperf.sdk.driver.DriverFacts`).

    driver: name of a plugin of ``aiperf.drivers``.
    """

    driver: str


@runtime_checkable
class SessionSchedule(Schedule, Protocol):
    """A schedule of session starts; later turns follow *spacing_ns* or recorded times.  ``due_block`` covers first turns.

    spacing_ns: time between a session's turns, from start to start; None uses the data set's times and delays.
    zero_ns: the recorded time that becomes the phase's start.
    """

    spacing_ns: int | None
    zero_ns: int

    def starts(self, first: int, count: int) -> SessionStarts:
        """Sessions *first* to *first* + *count* - 1.  Fewer than *count* sessions end the schedule."""


__all__ = ["Conversations", "Schedule", "ScheduleContext", "SessionSchedule", "SessionStarts"]
