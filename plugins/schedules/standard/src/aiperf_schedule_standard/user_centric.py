"""The scheduling mode of users with a constant time between their turns."""

from __future__ import annotations

import heapq
import math
from array import array

import numpy as np
from aiperf import ConfigError
from aiperf.sdk.columns import Ints
from aiperf.sdk.schedule import Conversations, ScheduleContext, SessionStarts

from aiperf_schedule_standard.replay import conversations_of, source_of


class UserCentric:
    """Users who send their turns at a constant pace and leave; a new user follows each.  The run starts in the steady state.

    Time is counted in slots of 1/rate.  Line *k* of *users* lines sends in the slots with remainder *k*, one user after the
    other, so that every slot has one request (spec: timing §15).  Users are numbered in the order in which they start; the
    sampler gives a user's conversation by that number.

    Raises:
        ConfigError: The phase has no rate or no users, or the conversations are too short on average.
    """

    paced = True
    zero_ns = 0

    def __init__(self, context: ScheduleContext) -> None:
        phase, self._data = context.phase, conversations_of(context)
        if phase.rate is None or phase.users is None:
            raise ConfigError(
                f"the user_centric schedule of the phase {phase.name!r} needs a rate and a number of users",
                "give --user-centric-rate and --num-users",
            )
        self._users, self._rate = phase.users, phase.rate
        self.spacing_ns = round(phase.users * 1e9 / phase.rate)
        # The next slot of each line, and the turns of the user who starts there; 0 is all turns of the conversation.
        self._next = [(0, 0), *virtual_history(phase.users, _mean_turns(context, self._data))]
        heapq.heapify(self._next)
        self._rows = array("q")

    def due_block(self, first: int, count: int) -> Ints:
        """Due times of the users' first turns."""
        return self.starts(first, count).due_ns

    def starts(self, first: int, count: int) -> SessionStarts:
        while len(self._rows) < 3 * (first + count):
            slot, left = self._next[0]
            entry = self._data.entry(len(self._rows) // 3)
            turns = self._data.turns(entry)
            if left:
                turns = min(left, turns)
            # The next user of the line starts after this user's last turn.
            heapq.heapreplace(self._next, (slot + turns * self._users, 0))
            self._rows.extend((round(slot * 1e9 / self._rate), entry, turns))
        rows = np.array(self._rows[3 * first : 3 * (first + count)], dtype=np.int64).reshape(-1, 3)
        return SessionStarts(rows[:, 0], rows[:, 1], rows[:, 2])


def virtual_history(users: int, mean_turns: int) -> list[tuple[int, int]]:
    """Users who started before the run: (line of the next turn, turns left), for users 2 to *users*.

    Lines are 1 to *users* - 1, each once; line 0 belongs to the first new user.  User 1 has no turns left.  *mean_turns* ≥ 2.
    """
    lifetime = mean_turns - 1
    # Else the smallest number from 2 on that shares no divisor with *users*.
    coprime = next((number for number in range(2, users) if math.gcd(users, number) == 1), 1)
    step = lifetime if math.gcd(users, lifetime) == 1 else -coprime
    return [(i * step % users, -(-i * lifetime // users)) for i in range(1, users)]


def _mean_turns(context: ScheduleContext, data: Conversations) -> int:
    mean = sum(map(data.turns, range(data.count))) / data.count
    if context.once:  # problems of one turn: each user has one, as those of two turns have in the history
        return max(2, round(mean))
    if round(mean) < 2:
        raise ConfigError(
            f"--user-centric-rate needs conversations of at least 2 turns on average, and those of {source_of(context)}"
            f" have {mean:.3g}",
            "raise --session-turns-mean, or give an --input-file of longer ones; for single turns use --request-rate",
        )
    return round(mean)
