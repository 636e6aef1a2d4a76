"""What all workers on one machine share: ceilings and counters, without a message.

A ceiling is an eventfd with semaphore semantics: a read takes a token, a write gives one, and its readability is the
wait.  A counter is the offset of an inherited file: ``lseek`` moves it by one and returns it, in one locked step.
A single worker uses plain integers.  What a worker holds of a shared ceiling, and how far a lone worker has counted, it notes
in its row of :mod:`aiperf.engine.standing`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, MutableSequence
from pathlib import Path
from typing import Protocol


class Slots(Protocol):
    """Rights to have a session active, or to wait for a first token."""

    def take(self) -> bool:
        """Take one if there is one."""
        ...

    def give(self, *, quiet: bool = False) -> None:
        """Give one back, or one more.  *quiet*: it was only just taken; nobody is called."""
        ...

    def more(self) -> None:
        """Raise the ceiling by one."""
        ...

    def wanted(self, call: Callable[[], None] | None) -> None:
        """Call back from the loop while slots may be free; None stops it."""
        ...


class LocalSlots:
    """The ceiling of a lone worker; *limit* None has no ceiling."""

    def __init__(self, limit: int | None) -> None:
        self._free = limit if limit is not None else 1 << 60
        self._call: Callable[[], None] | None = None

    def more(self) -> None:
        """Raise the ceiling by one."""
        self.give()

    def take(self) -> bool:
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def give(self, *, quiet: bool = False) -> None:
        self._free += 1
        if self._call is not None and not quiet:
            self._call()

    def wanted(self, call: Callable[[], None] | None) -> None:
        self._call = call


class SharedSlots:
    """The ceiling of several workers: an inherited eventfd (semaphore) that holds the free tokens.

    ``held[cell]`` counts what this worker holds.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, held: MutableSequence[int], cell: int) -> None:
        self._fd = fd
        self._loop = loop
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

    def more(self) -> None:
        """Raise the ceiling by one."""
        os.eventfd_write(self._fd, 1)

    def wanted(self, call: Callable[[], None] | None) -> None:
        if call is None:
            if self._waiting:
                self._loop.remove_reader(self._fd)
        else:
            self._loop.add_reader(self._fd, call)
        self._waiting = call is not None


def make_slots_fd(limit: int) -> int:
    """A ceiling of *limit* for :class:`SharedSlots`, to be inherited by workers."""
    return os.eventfd(limit, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)


class Counter(Protocol):
    def next(self) -> int:
        """0, 1, 2, …: every number once over all workers."""
        ...


class LocalCounter:
    """A lone worker's: ``cells[cell]`` is the next number."""

    def __init__(self, cells: MutableSequence[int], cell: int) -> None:
        self._cells, self._cell = cells, cell

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

    def next(self) -> int:
        return os.lseek(self._fd, 1, os.SEEK_CUR) - 1


def make_counter_fd() -> int:
    """A counter at 0, to be inherited by workers; its file has no name any more.

    It must be a regular file: the kernel locks the offset of those alone (a memfd gave the same number twice, 50 times in
    25,000).
    """
    fd, path = tempfile.mkstemp(prefix="aiperf-counter-")
    Path(path).unlink()
    return fd
