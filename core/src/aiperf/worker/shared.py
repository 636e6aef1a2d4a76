"""What the workers of one machine share, made by the process that starts them."""

from __future__ import annotations

import contextlib
import os

from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.worker.slots import PREFILLS, SLOTS, Progress, make_counter_fd, make_progress_fd, make_slots_fd, size_progress


class Shared:
    """What the workers of one machine share: limits and counters of each phase, and where each of them stands.

    *several*: for several workers.  *fds* are inherited by every worker: the standing, then, for several workers, four for
    each of so many *phases*: the limits of sessions and of prefills, arrivals, sessions.
    """

    def __init__(self, phases: int, *, several: bool) -> None:
        self.phases = phases
        self._workers = 1
        self.fds = [make_progress_fd(1, 1)]
        self._standing = Progress(self.fds[0], 1, 1)
        for _ in range(phases if several else 0):
            self.fds += [make_slots_fd(0), make_slots_fd(0), make_counter_fd(), make_counter_fd()]

    def begin(self, plan: Plan) -> None:
        """Set limits and counters to what they are before the plan.  No worker uses them."""
        self._workers = plan.run.workers
        self._standing.close()
        size_progress(self.fds[0], len(plan.load.phases), self._workers)
        self._standing = Progress(self.fds[0], len(plan.load.phases), self._workers)
        for phase in plan.load.phases if len(self.fds) > 1 else ():
            sessions, prefills, *counters = self._of(phase)
            _fill(sessions, phase.concurrency, ramped=phase.concurrency_ramp_ns is not None)
            _fill(prefills, phase.prefill_concurrency, ramped=phase.prefill_ramp_ns is not None)
            for counter in counters:
                os.lseek(counter, 0, os.SEEK_SET)

    def _of(self, phase: PhasePlan) -> list[int]:
        return self.fds[1 + 4 * phase.index : 5 + 4 * phase.index]

    def release(self, worker: int, phase: PhasePlan) -> None:
        """Give back what a dead worker held of the phase's limits."""
        held = self._standing.of(worker, phase.index)
        for cell, fd in zip((SLOTS, PREFILLS), self._of(phase), strict=False):
            if held[cell] > 0:
                os.eventfd_write(fd, held[cell])
            held[cell] = 0

    def requests(self) -> dict[int, int]:
        """How many requests each worker has sent."""
        return {worker: self._standing.requests(worker)[0] for worker in range(self._workers)}

    def close(self) -> None:
        self._standing.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []


def _fill(slots_fd: int, limit: int | None, *, ramped: bool) -> None:
    """Set the number of free slots, whatever a plan before has left."""
    with contextlib.suppress(BlockingIOError):
        while True:
            os.eventfd_read(slots_fd)
    os.eventfd_write(slots_fd, 1 if ramped else limit or 0)
