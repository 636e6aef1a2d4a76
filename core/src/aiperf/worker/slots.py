"""Limits and counters that all workers on one machine share without messages.

A limit is an eventfd with semaphore semantics: a read takes a slot, a write gives one, and its readability is the wait.  A
counter is the offset of an inherited file: ``lseek`` moves it by one and returns it, in one locked step.  A single worker uses
plain integers.  The slots that a worker holds of a shared limit, and the numbers that a single worker has drawn, stand in its
row of :class:`Progress`, memory that outlives its process: the worker that replaces a dead one goes on from it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, MutableSequence, Sequence
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

from aiperf.sdk.driver import NOTES
from aiperf.worker.clock import NS_PER_S

if TYPE_CHECKING:
    import asyncio


class LocalSlots:
    """The limit of a single worker; None limits nothing.

    Each slot allows one active session, or one request that waits for its first token.
    """

    def __init__(self, limit: int | None) -> None:
        self._free = limit if limit is not None else 1 << 60
        self._call: Callable[[], None] | None = None

    def take(self) -> bool:
        """Take a slot; False if none is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def give(self, *, quiet: bool = False) -> None:
        """Give a slot back.  *quiet*: it was only just taken; the waiter is not called."""
        self._free += 1
        if self._call is not None and not quiet:
            self._call()

    def notify(self, call: Callable[[], None] | None) -> None:
        """Call back from the loop while slots may be free; None cancels the callback."""
        self._call = call

    def add(self) -> None:
        """Raise the limit by one slot."""
        self.give()


class SharedSlots:
    """The limit of several workers: an inherited eventfd (semaphore) that holds the free slots.

    ``held[cell]`` counts the slots that this worker holds.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, held: MutableSequence[int], cell: int) -> None:
        self._fd, self._loop = fd, loop
        self._held, self._cell = held, cell
        self._waiting = False

    def take(self) -> bool:
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return False
        self._held[self._cell] += 1
        return True

    def give(self, *, quiet: bool = False) -> None:
        self._held[self._cell] -= 1
        os.eventfd_write(self._fd, 1)

    def add(self) -> None:
        """Raise the limit by one slot."""
        os.eventfd_write(self._fd, 1)

    def notify(self, call: Callable[[], None] | None) -> None:
        if call is not None:
            self._loop.add_reader(self._fd, call)
        elif self._waiting:
            self._loop.remove_reader(self._fd)
        self._waiting = call is not None


Slots = LocalSlots | SharedSlots


def make_slots_fd(limit: int) -> int:
    """A limit for :class:`SharedSlots`, to be inherited by workers."""
    return os.eventfd(limit, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)


class SlotGate:
    """Takes all slots that a turn needs, or none.

    limits_prefill: whether there is a limit of requests that wait for their first token.
    """

    def __init__(self, sessions: Slots, prefills: Slots | None = None) -> None:
        self._sessions, self._prefills = sessions, prefills
        self._lacking, self.release_session = sessions, sessions.give
        self.limits_prefill = prefills is not None

    def take_session(self) -> bool:
        if not self._sessions.take():
            self._lacking = self._sessions
            return False
        if self.take_turn():
            return True
        self._sessions.give(quiet=True)
        return False

    def take_turn(self) -> bool:
        if self._prefills is None or self._prefills.take():
            return True
        self._lacking = self._prefills
        return False

    def release_prefill(self, *, quiet: bool = False) -> None:
        if self._prefills is not None:
            self._prefills.give(quiet=quiet)

    def wait(self, call: Callable[[], None] | None, *, turns: bool = False) -> None:
        # Only the lacking slots: a shared limit is readable while it has free slots, and would keep the loop busy.
        for slots in (self._sessions, self._prefills):
            if slots is not None:
                slots.notify(call if slots is self._lacking or (turns and slots is self._prefills) else None)

    def stop_waiting(self) -> None:
        """Cancel all callbacks."""
        self.wait(None)


class Rise:
    """Raises a limit slot by slot, along its ramp.

    levels: when each further slot is added, in ns after the phase's start, never decreasing.
    """

    def __init__(self, levels: memoryview, slots: Slots, loop: asyncio.AbstractEventLoop) -> None:
        self._levels, self._slots, self._loop = levels, slots, loop
        self._start_ns = self._level = 0
        self._handle: asyncio.TimerHandle | None = None

    def begin(self, start_ns: int, *, skip: bool = False) -> None:
        """*skip*: an earlier process has added the slots due by now."""
        self._start_ns = start_ns
        if skip:
            self._level = bisect_right(self._levels, monotonic_ns() - start_ns)
        self._rise()

    def _rise(self) -> None:
        levels = self._levels
        while self._level < len(levels):
            left_ns = self._start_ns + levels[self._level] - monotonic_ns()
            if left_ns > 0:
                self._handle = self._loop.call_later(left_ns / NS_PER_S, self._rise)
                return
            self._level += 1
            self._slots.add()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._level = len(self._levels)


def first_slots(site: int) -> int:
    """Where a limit that rises begins: it is 1, and that slot is at the first site."""
    return 1 if site == 0 else 0


def site_levels(levels: memoryview, site: int, sites: int) -> memoryview:
    """The *levels* of a site, of those of the whole limit: slot k is at site k modulo *sites*, so that at each instant all of
    them have together what one machine has.  Slot 0 is there from the start, and slot k comes at ``levels[k - 1]``."""
    return levels[(site or sites) - 1 :: sites]


class LocalCounter:
    """The counter of a single worker: ``cells[cell]`` is the next number."""

    def __init__(self, cells: MutableSequence[int], cell: int) -> None:
        self._cells, self._cell = cells, cell

    def ready(self) -> bool:
        return True

    def next(self) -> int:
        value = self._cells[self._cell]
        self._cells[self._cell] = value + 1
        return value


class SharedCounter:
    """A counter that several processes draw from: the offset of an inherited file description.

    ``lseek(fd, 1, SEEK_CUR)`` is atomic over all processes that share the description of a regular file (POSIX; Linux takes
    ``f_pos_lock``).
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def ready(self) -> bool:
        return True

    def next(self) -> int:
        return os.lseek(self._fd, 1, os.SEEK_CUR) - 1


def make_counter_fd() -> int:
    """A counter at 0, to be inherited by workers; its file is unlinked.

    It must be a regular file: the kernel locks the offset of no other (a memfd gave the same number twice, 50 times in 25,000).
    """
    return _unlinked_file("aiperf-counter-")


def _unlinked_file(prefix: str) -> int:
    fd, path = tempfile.mkstemp(prefix=prefix)
    Path(path).unlink()
    return fd


SLOTS, PREFILLS = 2, 3
"""Cells of a shard in a phase, behind the driver's ARRIVALS and SESSIONS: session and prefill slots that the worker holds of
a shared limit."""
_CELLS = 4
"""Numbers of a worker in a phase: ARRIVALS, SESSIONS, SLOTS and PREFILLS; NOTES of the driver stand behind all phases."""


class Progress:
    """How far each worker is: a table of int64 for *phases* phases and *workers* workers.

    The parent makes it in an unlinked file, and every worker maps it.  A cell has one writer, so a plain store of
    40 ns is enough.
    """

    def __init__(self, fd: int, phases: int, workers: int) -> None:
        self._row, self._workers = 1 + phases * _CELLS + NOTES, workers
        self._map = mmap.mmap(fd, workers * self._row * 8)
        self._table = memoryview(self._map).cast("q")

    def requests(self, worker: int) -> MutableSequence[int]:
        """One cell: the number of requests that the worker has numbered."""
        at = worker * self._row
        return self._table[at : at + 1]  # type: ignore[return-value]  # a memoryview is one, but typeshed has no insert for it

    def of(self, worker: int, phase: int) -> MutableSequence[int]:
        """The worker's cells of a phase: ARRIVALS, SESSIONS, SLOTS and PREFILLS."""
        at = worker * self._row + 1 + phase * _CELLS
        return self._table[at : at + _CELLS]  # type: ignore[return-value]

    def notes(self) -> Sequence[MutableSequence[int]]:
        """For each worker the cells of ``DriverContext.notes``."""
        ends = range(self._row, self._workers * self._row + 1, self._row)
        return [self._table[end - NOTES : end] for end in ends]  # type: ignore[misc]

    def close(self) -> None:
        """Drop the table and its descriptor; no cells of it may be in use."""
        self._table.release()
        self._map.close()


def make_progress_fd(phases: int, workers: int) -> int:
    """A table of zeros, to be inherited by workers; its file is unlinked."""
    fd = _unlinked_file("aiperf-progress-")
    size_progress(fd, phases, workers)
    return fd


def size_progress(fd: int, phases: int, workers: int) -> None:
    """Make the table of a :class:`Progress` that nobody uses one of zeros for so many phases and workers."""
    os.ftruncate(fd, 0)
    os.ftruncate(fd, workers * (1 + phases * _CELLS + NOTES) * 8)
