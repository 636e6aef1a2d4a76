"""Schedules that say when each session starts: a replayed trace, and users who come one after the other."""

from __future__ import annotations

import heapq
import logging
import math
from array import array
from typing import TYPE_CHECKING

from aiperf.errors import ConfigError
from aiperf.plan import Replay
from aiperf.schedule import Conversations, ScheduleContext, SessionStarts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aiperf.columns import Ints

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000


class FixedSchedule:
    """A trace at its recorded times: every conversation of the window once, ordered by its first turn's time.

    Ties keep the file's order.  A conversation is kept or left out whole, by when it begins (spec: timing §13).

    Raises:
        ConfigError: A conversation has no time, or none begins inside the window.
    """

    paced = True
    spacing_ns = None

    def __init__(self, context: ScheduleContext) -> None:
        import numpy as np

        data, replay = _conversations(context), context.phase.replay or Replay()
        begins_ns = np.array([data.timestamp_ns(entry, 0) for entry in range(data.count)], dtype=np.int64)
        _check_times(context, begins_ns)
        inside = np.flatnonzero(_inside(context, replay, begins_ns))
        entry = inside[np.argsort(begins_ns[inside], kind="stable")]
        self.zero_ns = int(begins_ns[entry[0]]) if replay.auto_offset else (replay.start_ms or 0) * _NS_PER_MS
        turns = np.array([data.turns(int(one)) for one in entry], dtype=np.int64)
        self._starts = SessionStarts(begins_ns[entry] - self.zero_ns, entry, turns)

    def due_block(self, first: int, count: int) -> Ints:
        """When the first turns of sessions are due."""
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        every, part = self._starts, slice(first, first + count)
        return SessionStarts(every.due_ns[part], every.entry[part], every.turns[part])


def _check_times(context: ScheduleContext, begins_ns: Ints) -> None:
    import numpy as np

    without = np.flatnonzero(begins_ns < 0)
    if len(without):
        raise ConfigError(
            f"{_source(context)} has no 'timestamp' in the first turn of {len(without)} of its {len(begins_ns)} conversations"
            f" (the first is number {without[0] + 1}), and a fixed schedule needs one in each",
            "add the times (milliseconds), or drop --fixed-schedule",
        )


def _inside(context: ScheduleContext, replay: Replay, begins_ns: Ints) -> NDArray[np.bool_]:
    """Which conversations begin inside the window, both its ends included."""
    begins_ms = begins_ns / _NS_PER_MS
    start = -math.inf if replay.start_ms is None else replay.start_ms
    end = math.inf if replay.end_ms is None else replay.end_ms
    inside: NDArray[np.bool_] = (begins_ms >= start) & (begins_ms <= end)
    outside = int((~inside).sum())
    if not outside:
        return inside
    bounds = {"--fixed-schedule-start-offset": replay.start_ms, "--fixed-schedule-end-offset": replay.end_ms}
    window = " ".join(f"{flag} {bound}" for flag, bound in bounds.items() if bound is not None)
    if outside == len(begins_ns):
        raise ConfigError(
            f"nothing of {_source(context)} lies inside {window}: all {outside} conversations begin outside",
            f"they begin between {begins_ms.min():g} and {begins_ms.max():g} ms; move the window, or drop it",
        )
    log.info("%s leaves out %d of %d conversations of %s", window, outside, len(begins_ns), _source(context))
    return inside


class UserCentric:
    """Users who make their turns at a constant pace and go, each followed by another, as if they had always come and gone.

    Time is counted in slots of 1/rate.  There is a line of users for each order below *users*: they send in the slots that
    leave this remainder, one user after the other, so that every slot has one request (spec: timing §15).  Users are numbered
    in the order in which they start, and their conversations are those that the sampler gives these numbers.

    Raises:
        ConfigError: There is no rate, are no users, or the conversations are too short on average.
    """

    paced = True
    zero_ns = 0

    def __init__(self, context: ScheduleContext) -> None:
        phase, self._data = context.phase, _conversations(context)
        if phase.rate is None or phase.users is None:
            raise ConfigError(
                f"the user_centric schedule of the phase {phase.name!r} needs a rate and a number of users",
                "give --user-centric-rate and --num-users",
            )
        self._users, self._rate = phase.users, phase.rate
        self.spacing_ns = round(phase.users * 1e9 / phase.rate)
        history = virtual_history(phase.users, _mean_turns(context, self._data))
        # The next slot of each line, and how many turns the user has who starts there; 0 is all of the conversation's.
        self._next = [(0, 0), *history]
        heapq.heapify(self._next)
        self._made = array("q")

    def due_block(self, first: int, count: int) -> Ints:
        """When the first turns of users are due."""
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        import numpy as np

        while len(self._made) < 3 * (first + count):
            self._make()
        rows = np.array(self._made[3 * first : 3 * (first + count)], dtype=np.int64).reshape(-1, 3)
        return SessionStarts(rows[:, 0], rows[:, 1], rows[:, 2])

    def _make(self) -> None:
        """Another user, who reserves the place behind its last turn for the next one."""
        slot, left = self._next[0]
        entry = self._data.entry(len(self._made) // 3)
        turns = self._data.turns(entry)
        if left:
            turns = min(left, turns)
        heapq.heapreplace(self._next, (slot + turns * self._users, 0))
        self._made.extend((round(slot * 1e9 / self._rate), entry, turns))


def virtual_history(users: int, mean_turns: int) -> list[tuple[int, int]]:
    """The users who came before the run and are still there: (order of their next turn, turns left), for users 2 to *users*.

    Orders are 1 to *users* - 1, each once; order 0 is the first new user's.  User 1 has made its turns.  *mean_turns* ≥ 2.
    """
    lifetime = mean_turns - 1
    step = lifetime if math.gcd(users, lifetime) == 1 else -_coprime(users)
    return [(i * step % users, -(-i * lifetime // users)) for i in range(1, users)]


def _coprime(number: int) -> int:
    """The smallest from 2 on that shares no divisor with *number*; 1 for 1 and 2."""
    return 1 if number <= 2 else next(c for c in range(2, number) if math.gcd(number, c) == 1)


def _mean_turns(context: ScheduleContext, data: Conversations) -> int:
    mean = sum(map(data.turns, range(data.count))) / data.count
    if round(mean) < 2:
        raise ConfigError(
            f"--user-centric-rate needs conversations of at least 2 turns on average, and those of {_source(context)}"
            f" have {mean:.3g}",
            "raise --session-turns-mean, or give an --input-file of longer ones; for single turns use --request-rate",
        )
    return round(mean)


def _conversations(context: ScheduleContext) -> Conversations:
    if context.data is None:
        raise ConfigError(f"the {context.phase.schedule} schedule needs a data set: its sessions follow from it")
    return context.data


def _source(context: ScheduleContext) -> str:
    return context.source or "the data set"
