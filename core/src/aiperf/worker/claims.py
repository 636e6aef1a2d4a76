"""Numbers of arrivals and sessions at a site, which has claimed them from its run in blocks.

The workers of a site draw positions 0, 1, 2, … together, as those of one machine draw numbers; the blocks say which number
stands at each position.  A position is drawn behind a unit of the stock, an eventfd with semaphore semantics, so that nobody
draws one whose block is not there yet.  Blocks stand in a table in memory that the site appends to and its workers map.
"""

from __future__ import annotations

import mmap
import os
import select
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiperf.worker.slots import SlotGate, Slots

if TYPE_CHECKING:
    import asyncio

_ROWS = 1 << 18
"""Most blocks of a phase at a site that do not follow on each other: at one in 20 ms they last for 1.4 h."""
_CELLS = 2 + 2 * _ROWS
"""Numbers of a table of blocks."""
WITHOUT_END = 1 << 40
"""A number beyond the count of any phase."""


def make_blocks_fd() -> int:
    """An empty table of blocks for the arrivals and one for the sessions of a phase, to be inherited by workers."""
    fd = os.memfd_create("aiperf-blocks")  # in no file: a write to one that is mapped ends the process where the disk is full
    empty_blocks(fd)
    return fd


def empty_blocks(fd: int) -> None:
    """Drop all blocks.  Nobody uses them."""
    os.ftruncate(fd, 0)
    os.ftruncate(fd, 2 * _CELLS * 8)


class Blocks:
    """A table of blocks: their number, whether a worker waits for one, then of each block the position behind its last number,
    and its first number.

    *counter*: ARRIVALS or SESSIONS.
    """

    def __init__(self, fd: int, counter: int) -> None:
        table = memoryview(mmap.mmap(fd, 2 * _CELLS * 8)).cast("q")
        self._cells = table[counter * _CELLS : (counter + 1) * _CELLS]
        self._row, self._begin = 0, 0

    def number(self, position: int) -> int:
        """The number at a position that is there; positions of further calls are greater."""
        cells = self._cells
        while (end := cells[2 + 2 * self._row]) <= position:
            self._row, self._begin = self._row + 1, end
        return cells[3 + 2 * self._row] + position - self._begin

    def append(self, start: int, count: int) -> None:
        """The numbers from *start* on stand behind the others.

        Raises:
            OSError: The table is full, or the disk is.
        """
        cells, rows = self._cells, self._cells[0]
        end = cells[2 * rows] if rows else 0
        begin = cells[2 * rows - 2] if rows > 1 else 0
        if rows and cells[2 * rows + 1] + end - begin == start:
            cells[2 * rows] = end + count
            return
        if rows >= _ROWS:
            raise OSError("too many blocks of numbers in a phase")
        cells[2 * rows + 3], cells[2 * rows + 2] = start, end + count
        cells[0] = rows + 1

    @property
    def wanted(self) -> bool:
        """Whether a worker has waited for a number since this was False."""
        return bool(self._cells[1])

    @wanted.setter
    def wanted(self, wanted: bool) -> None:
        self._cells[1] = wanted

    def close(self) -> None:
        self._cells.release()


class ClaimedCounter:
    """Draws the numbers of a site.  *stock_fd*: of the semaphore; *position_fd*: of the counter of positions."""

    def __init__(self, stock_fd: int, position_fd: int, blocks: Blocks, loop: asyncio.AbstractEventLoop) -> None:
        self._stock_fd, self._position_fd, self._blocks, self._loop = stock_fd, position_fd, blocks, loop
        self._held = self._waiting = False

    def ready(self) -> bool:
        """Whether a number is there.  It is kept for this worker, until it draws or gives it back."""
        if not self._held:
            try:
                os.eventfd_read(self._stock_fd)
            except BlockingIOError:
                self._blocks.wanted = True
                return False
            self._held = True
        return True

    def give(self) -> None:
        """Give back what is kept: nothing was drawn."""
        if self._held:
            self._held = False
            os.eventfd_write(self._stock_fd, 1)

    def next(self) -> int:
        """The next number.  A driver draws behind its gate, which waits for numbers; one that doesn't, waits here."""
        while not self.ready():
            if 0 in select.select([self._stock_fd, 0], [], [])[0]:
                return WITHOUT_END  # the site is gone, and nothing more is sent
        self._held = False
        return self._blocks.number(os.lseek(self._position_fd, 1, os.SEEK_CUR) - 1)

    def notify(self, call: Callable[[], None] | None) -> None:
        """Call back from the loop while numbers may be there; None cancels the callback."""
        if call is not None:
            self._loop.add_reader(self._stock_fd, call)
        elif self._waiting:
            self._loop.remove_reader(self._stock_fd)
        self._waiting = call is not None


class ClaimGate(SlotGate):
    """The gate of a worker at one of several sites: it opens once the numbers are there that a request needs.

    *sessions_drawn*: whether the driver draws numbers of sessions.  Those are waited for before later turns, too, because a
    driver may begin a session in the place of a turn.
    """

    def __init__(
        self, sessions: Slots, prefills: Slots | None, arrivals: ClaimedCounter, numbers: ClaimedCounter, *,
        sessions_drawn: bool,
    ) -> None:  # fmt: skip
        super().__init__(sessions, prefills)
        self.release_session = self._release
        self._counters = (numbers, arrivals) if sessions_drawn else (arrivals,)
        self._lacking_number: ClaimedCounter | None = None

    def take_session(self) -> bool:
        self._lacking_number = None
        return super().take_session()

    def take_turn(self) -> bool:
        self._lacking_number = next((counter for counter in self._counters if not counter.ready()), None)
        if self._lacking_number is None and super().take_turn():
            return True
        self._give_numbers()
        return False

    def _release(self, *, quiet: bool = False) -> None:
        """Give numbers back, too, that were taken for a session which there is not: another worker may need them."""
        self._give_numbers()
        self._sessions.give(quiet=quiet)

    def wait(self, call: Callable[[], None] | None, *, turns: bool = False) -> None:
        lacking = self._lacking_number
        super().wait(call if lacking is None else None, turns=turns)
        for counter in self._counters:
            counter.notify(call if counter is lacking else None)

    def stop_waiting(self) -> None:
        super().stop_waiting()
        self._give_numbers()

    def _give_numbers(self) -> None:
        for counter in self._counters:
            counter.give()
