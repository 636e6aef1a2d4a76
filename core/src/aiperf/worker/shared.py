"""What the workers of one machine share, made by the process that starts them."""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiperf.sdk.driver import ARRIVALS, SESSIONS
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.worker.claims import empty_blocks, make_blocks_fd
from aiperf.worker.slots import (
    PREFILLS,
    SLOTS,
    Progress,
    first_slots,
    make_counter_fd,
    make_progress_fd,
    make_slots_fd,
    size_progress,
)


class ClaimFds(NamedTuple):
    """Descriptors for the numbers that a site has claimed for a phase.

    stocks: semaphores of the numbers that nobody has drawn, of ARRIVALS and SESSIONS; positions: counters of those drawn.
    blocks: the table of :mod:`aiperf.worker.claims`.
    """

    stocks: tuple[int, int]
    positions: tuple[int, int]
    blocks: int


class Shared:
    """What the workers of one machine share: limits and counters of each phase, and where each of them stands.

    *several*: for several workers.  *fds* are inherited by every worker: the standing, then, for several workers, four for
    each of so many *phases*: the limits of sessions and of prefills, arrivals, sessions.  *claims*: this is a site that
    gets numbers from its run; three more for each phase stand behind: stocks of arrivals and of sessions, blocks.
    """

    def __init__(self, phases: int, *, several: bool, claims: bool = False) -> None:
        self.phases = phases
        self._workers = 1
        self.fds = [make_progress_fd(1, 1)]
        self._standing = Progress(self.fds[0], 1, 1)
        for _ in range(phases if several else 0):
            self.fds += [make_slots_fd(0), make_slots_fd(0), make_counter_fd(), make_counter_fd()]
        for _ in range(phases if claims else 0):
            self.fds += [make_slots_fd(0), make_slots_fd(0), make_blocks_fd()]
        self._claims = [claim_fds(self.fds, phase) for phase in range(phases if claims else 0)]

    def begin(self, plan: Plan, site: int = 0) -> None:
        """Set limits and counters to what they are before the plan, at this *site* of the run.  No worker uses them."""
        self._workers = plan.run.workers
        self._standing.close()
        size_progress(self.fds[0], len(plan.load.phases), self._workers)
        self._standing = Progress(self.fds[0], len(plan.load.phases), self._workers)
        for fds in self._claims:
            for fd in fds.stocks:
                _fill(fd, 0)
            empty_blocks(fds.blocks)
        for phase in plan.load.phases if len(self.fds) > 1 else ():
            sessions, prefills, *counters = self._of(phase)
            limits = (phase.concurrency, phase.concurrency_ramp_ns), (phase.prefill_concurrency, phase.prefill_ramp_ns)
            for slots_fd, (limit, ramp_ns) in zip((sessions, prefills), limits, strict=True):
                _fill(slots_fd, limit or 0 if ramp_ns is None else first_slots(site))
            for counter in counters:
                os.lseek(counter, 0, os.SEEK_SET)

    def claims(self, phase: PhasePlan) -> ClaimFds:
        """The phase's numbers, at a site that gets them from its run."""
        return self._claims[phase.index]

    def _of(self, phase: PhasePlan) -> list[int]:
        return self.fds[1 + 4 * phase.index : 5 + 4 * phase.index]

    def release(self, worker: int, phase: PhasePlan) -> None:
        """Give back what a dead worker held of the phase's limits."""
        held = self._standing.of(worker, phase.index)
        for cell, fd in zip((SLOTS, PREFILLS), self._of(phase), strict=False):
            if held[cell] > 0:
                os.eventfd_write(fd, held[cell])
            held[cell] = 0

    def number_from(self, worker: int, request: int) -> None:
        """The worker numbers its requests from there on."""
        self._standing.requests(worker)[0] = request

    def go_on(self, worker: int, phase: int, arrivals: int, sessions: int) -> None:
        """The worker begins the phase behind so many of its arrivals and sessions."""
        cells = self._standing.of(worker, phase)
        cells[ARRIVALS], cells[SESSIONS] = arrivals, sessions

    def sessions(self, worker: int, phase: int) -> int:
        """How many of its sessions the worker has started."""
        return self._standing.of(worker, phase)[SESSIONS]

    def notes(self, workers: Sequence[int]) -> dict[int, list[int]]:
        """What these workers have told the others (``DriverContext.notes``)."""
        notes = self._standing.notes()
        return {worker: list(notes[worker]) for worker in workers}

    def take_notes(self, notes: Mapping[int, Sequence[int]]) -> None:
        """What workers of other sites have told, for those of this one."""
        rows = self._standing.notes()
        for worker, told in notes.items():
            rows[worker][:] = array("q", told)

    def requests(self) -> dict[int, int]:
        """How many requests each worker has sent."""
        return {worker: self._standing.requests(worker)[0] for worker in range(self._workers)}

    def close(self) -> None:
        self._standing.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []


def claim_fds(fds: Sequence[int], phase: int) -> ClaimFds:
    """The phase's own, among the descriptors of a :class:`Shared` with claims."""
    phases = len(fds) // (4 + 3)
    at = 1 + 4 * phases + 3 * phase
    return ClaimFds((fds[at], fds[at + 1]), (fds[3 + 4 * phase], fds[4 + 4 * phase]), fds[at + 2])


def _fill(slots_fd: int, free: int) -> None:
    """Set the number of free slots, whatever a plan before has left."""
    with contextlib.suppress(BlockingIOError):
        while True:
            os.eventfd_read(slots_fd)
    os.eventfd_write(slots_fd, free)
