"""Where a worker of a site that was lost goes on: behind everything that the lost one may have sent.

What a lost site has sent since its last word nobody knows.  No arrival may be sent twice, so the next process begins with the
first one that was not due before it could begin, and the arrivals between are unknown.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from pathlib import Path

from msgspec import Struct

from aiperf.sdk.plan import PhasePlan


class Standing(Struct, frozen=True, array_like=True):
    """How far a worker is in a phase, as its site told: requests that it has sent, and then sessions that it has started."""

    phase: int
    sent: int
    sessions: int


class PassedCells(Struct, frozen=True):
    """Where a worker goes on: the cells ARRIVALS and SESSIONS of ``DriverContext.progress``."""

    arrivals: int
    sessions: int


class PhaseTimes:
    """When the arrivals of a phase, or its sessions, are due; of a phase that has such times."""

    def __init__(self, phase: PhasePlan) -> None:
        self._times = _mapped(phase.due_file)
        self._sessions = None if phase.sessions_file is None else _mapped(phase.sessions_file)

    @property
    def arrivals(self) -> int:
        """Number of arrivals, those of all workers."""
        return len(self._times)

    def place(self, shard: int, shards: int, elapsed_ns: int, known: Standing) -> PassedCells:
        """Where the worker goes on that begins *elapsed_ns* after the phase, where *known* was the last word of the lost one.

        Of arrivals with due times each starts one session at most, so no more sessions were started since than arrivals were
        sent.
        """
        if self._sessions is not None:
            rows, times = self._sessions, self._times
            count = bisect_left(range(len(rows) // 3), elapsed_ns, key=lambda session: times[rows[3 * session + 2]])
            return PassedCells(0, _own(count, shard, shards))
        arrivals = _own(bisect_left(self._times, elapsed_ns), shard, shards)
        return PassedCells(arrivals, min(arrivals, known.sessions + max(0, arrivals - known.sent)))


def _own(count: int, shard: int, shards: int) -> int:
    """How many of the first *count* belong to the shard."""
    return max(0, -(-(count - shard) // shards))


def _mapped(path: str | None) -> memoryview:
    """A file of int64; empty without one, or where it has none."""
    if path is None or not Path(path).stat().st_size:
        return memoryview(b"").cast("q")
    with Path(path).open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).cast("q")
