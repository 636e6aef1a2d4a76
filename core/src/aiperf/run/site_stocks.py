"""A site's end of claims: it keeps numbers of arrivals and sessions in stock for its workers (:mod:`aiperf.sites.claims`)."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Container, Sequence

from aiperf.sdk.plan import PhasePlan
from aiperf.sites.messages import Block, Claim, GiveBack, Given
from aiperf.worker.claims import Blocks
from aiperf.worker.shared import ClaimFds

LOOK_S = 0.02
"""Between two looks at the stock while numbers are drawn."""
_STOCK_S = 0.5
"""A block lasts for so long, and for the way there and back."""
_AHEAD, _NEXT_TREES = 64, 2
"""Numbers that are claimed before the phase: for each of its slots, because the server may answer at once; and of trees that
follow in lanes, each of which lasts for long: few, so that they begin nearly in the order of their numbers."""
_BEYOND = 4096
"""Numbers at a time that are beyond the count: before the next plan what is left of a stock is taken out one by one."""
_SETTLES_S = 2 * LOOK_S
"""A block is not given back before: a worker that waits for it may not have run yet."""
_STEADY = 0.8
"""Of the greatest rate before, what counts at the next look: answers may come in gusts."""


class Stock:
    """The numbers of one counter of a phase.  *fds*: of the phase.  *ahead*: claimed at first, and *least* of them for now."""

    def __init__(
        self, phase: int, counter: int, fds: ClaimFds, ahead: tuple[int, int], send: Callable[[Claim | Given], None]
    ) -> None:  # fmt: skip
        self._phase, self._counter, self._send = phase, counter, send
        self._stock_fd, self._position_fd = fds.stocks[counter], fds.positions[counter]
        self._blocks = Blocks(fds.blocks, counter)
        self._granted = self._drawn = 0
        self._rate, self._looked_s = 0.0, 0.0
        self._asked_s: float | None = None
        self._way_s = LOOK_S
        self._came_s = 0.0
        self._wanted_back: float | None = None
        self._dry = self._was_wanted = False
        self._beyond: int | None = None
        self._ask(*ahead)

    def take(self, block: Block) -> None:
        """An answer to a claim, or more behind it."""
        if self._asked_s is not None:
            self._way_s, self._asked_s = time.monotonic() - self._asked_s, None
        self._dry = self._dry or not block.count
        if block.over:
            self._beyond = block.start
            self._add_beyond(self._beyond)
        elif block.count:
            self._add(block.start, block.count)

    def look(self, now_s: float) -> bool:
        """Claim more where the stock is low; whether numbers were drawn since the look before, or are to be given back."""
        if (rate := self._wanted_back) is not None:
            self.give_back(rate)
        drawn = os.lseek(self._position_fd, 0, os.SEEK_CUR)
        moved, gone_s = drawn - self._drawn, now_s - self._looked_s
        self._rate = max(moved / gone_s, self._rate * _STEADY) if self._looked_s and gone_s > 0 else 0.0
        self._drawn, self._looked_s = drawn, now_s
        self._was_wanted = self._was_wanted and not moved
        left, ahead_s = self._granted - drawn, 2 * (self._way_s + LOOK_S)
        if self._beyond is not None:
            if left <= _BEYOND // 2:
                self._add_beyond(self._beyond)
        elif self._asked_s is None:
            if self._dry:
                if left <= 0 and self._blocks.wanted:
                    self._ask(1, 1, empty=True)
            elif left <= (low := round(self._rate * ahead_s)) or self._blocks.wanted:
                self._ask(round(self._rate * (ahead_s + _STOCK_S)), low)
        return moved > 0 or self._wanted_back is not None

    def give_back(self, rate: float) -> None:
        """Give a part of what nobody has drawn to the run, for a site that draws *rate* in a second; it is drawn here, so that
        no worker has it.  Where a block has just come, at a later look."""
        self._wanted_back = rate if time.monotonic() - self._came_s < _SETTLES_S else None
        if self._wanted_back is not None:
            return
        blocks: list[tuple[int, int]] = []
        left = 0 if self._beyond is not None else self._granted - os.lseek(self._position_fd, 0, os.SEEK_CUR)
        share = rate / (rate + self._rate) if rate > 0 else 0.5
        for _ in range(math.ceil(left * share)):
            try:
                os.eventfd_read(self._stock_fd)
            except BlockingIOError:
                break
            number = self._blocks.number(os.lseek(self._position_fd, 1, os.SEEK_CUR) - 1)
            if blocks and sum(blocks[-1]) == number:
                blocks[-1] = blocks[-1][0], blocks[-1][1] + 1
            else:
                blocks.append((number, 1))
        if blocks:
            self._drawn += sum(count for _, count in blocks)
            # A worker that a block was for may not have seen it.
            self._blocks.wanted = self._blocks.wanted or self._was_wanted
        self._send(Given(self._phase, self._counter, blocks))

    def _add(self, start: int, count: int) -> None:
        self._came_s = time.monotonic()
        self._was_wanted = self._was_wanted or self._blocks.wanted
        self._blocks.wanted = False
        self._blocks.append(start, count)
        self._granted += count
        os.eventfd_write(self._stock_fd, count)

    def _add_beyond(self, start: int) -> None:
        """Numbers that nobody else has follow without end."""
        self._add(start, _BEYOND)
        self._beyond = start + _BEYOND

    def _ask(self, want: int, least: int, *, empty: bool = False) -> None:
        self._asked_s = time.monotonic()
        self._send(Claim(self._phase, self._counter, max(1, want), max(1, least), empty, self._rate))


class Stocks:
    """The stocks of all *phases*.  *send*: to the run.  *lanes*: indices of the phases whose slots are lanes, of all *sites*.
    active: whether to look again soon."""

    def __init__(
        self, phases: Sequence[PhasePlan], fds: Sequence[ClaimFds], send: Callable[[Claim | Given], None],
        lanes: Container[int] = (), sites: int = 1,
    ) -> None:  # fmt: skip
        self.active = False
        self._stocks = {
            (phase.index, counter): Stock(phase.index, counter, fds[phase.index], ahead, send)
            for phase in phases
            for counter, ahead in enumerate(_ahead(phase, sites if phase.index in lanes else None))
        }

    def look(self) -> None:
        now_s = time.monotonic()
        self.active = sum(stock.look(now_s) for stock in self._stocks.values()) > 0

    def handle(self, message: Block | GiveBack) -> None:
        stock = self._stocks[message.phase, message.counter]
        if isinstance(message, Block):
            stock.take(message)
        else:
            stock.give_back(message.rate)


def _ahead(phase: PhasePlan, sites: int | None) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many ARRIVALS, and how many SESSIONS, a site claims before the phase, and how many of them at least.

    *sites*: among so many the phase's lanes are divided; None where it has none.
    """
    slots = max(phase.concurrency or 0, phase.prefill_concurrency or 0, 1)
    own = -(-slots // (sites or 1))
    many = _AHEAD * own, own
    return many, many if sites is None else (_NEXT_TREES, 1)
