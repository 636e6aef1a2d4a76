"""The processes of a run: workers and reducers, started early so that they import while the data set is built."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from aiperf.engine.slots import make_counter_fd, make_slots_fd
from aiperf.engine.standing import PREFILLS, SLOTS, Standing, make_standing_fd
from aiperf.local import Local, LocalProcess
from aiperf.plan import PhasePlan, Plan
from aiperf.shards import Shard, ShardEngine, ShardStart
from aiperf.strangers import blamed, load, who


class Child:
    """One process, known to the control channel as *identity* (``worker-0``)."""

    def __init__(self, role: str, index: int, process: Shard) -> None:
        self.role, self.index, self.process = role, index, process
        self.up = self.ready = self.ended = False

    @property
    def identity(self) -> str:
        return f"{self.role}-{self.index}"

    def fate(self) -> str:
        """How it died, in words."""
        code = self.process.poll()
        if code is None:
            return "is running"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"exited with {code}"


class Shared:
    """What the workers of one machine share: limits and counters of each phase, and where each of them stands.

    *fds* are inherited by every worker: the standing, then, for several workers, four of each phase: the limits of sessions
    and of prefills (-1: none), arrivals, sessions.
    """

    def __init__(self, plan: Plan) -> None:
        standing = make_standing_fd(len(plan.phases), plan.workers)
        self._standing = Standing(standing, len(plan.phases), plan.workers)
        self._limits: dict[tuple[int, int], int] = {}
        self.fds = [standing]
        for phase in plan.phases if plan.workers > 1 else ():
            for cell, limit, ramp_ns in (
                (SLOTS, phase.concurrency, phase.concurrency_ramp_ns),
                (PREFILLS, phase.prefill_concurrency, phase.prefill_ramp_ns),
            ):
                fd = -1 if limit is None else make_slots_fd(limit if ramp_ns is None else 1)
                if fd >= 0:
                    self._limits[phase.index, cell] = fd
                self.fds.append(fd)
            self.fds += [make_counter_fd(), make_counter_fd()]

    def release(self, worker: int, phase: PhasePlan) -> None:
        """Give back what a dead worker held of the phase's limits."""
        held = self._standing.of(worker, phase.index)
        for cell in (SLOTS, PREFILLS):
            fd = self._limits.get((phase.index, cell))
            if fd is not None and held[cell] > 0:
                os.eventfd_write(fd, held[cell])
            held[cell] = 0

    def close(self) -> None:
        for fd in self.fds:
            if fd >= 0:
                os.close(fd)
        self.fds = []


class Children:
    """Starts, watches and ends them; never leaves one behind.

    Reducers are processes of this machine; where workers are, the plan's engine decides.
    """

    def __init__(self, plan: Plan, address: str, journal: Path, log: Path) -> None:
        self._plan, self._address, self._journal, self._log = plan, address, journal, log
        self._engine, self._engine_name = _engine(plan)
        self.shared = Shared(plan)
        self.workers = [self._worker(index) for index in range(plan.workers)]
        self.reducers = [self._reducer(index) for index in range(plan.reducers)]

    @property
    def all(self) -> list[Child]:
        return [*self.workers, *self.reducers]

    @property
    def replaceable(self) -> bool:
        """Whether another worker can go on where a dead one stood."""
        return self._engine.shares_memory

    def _worker(self, index: int) -> Child:
        fds = self.shared.fds if self._engine.shares_memory else []
        command = self._command("aiperf.engine.worker", index, self._plan.workers, ",".join(map(str, fds)))
        start = ShardStart(index, command, tuple(fd for fd in fds if fd >= 0), self._log)
        with blamed(self._engine_name, f"can't start shard {index}"):
            return Child("worker", index, self._engine.start(start))

    def _reducer(self, index: int) -> Child:
        command = self._command("aiperf.reducer", index, self._plan.reducers, self._journal)
        return Child("reducer", index, LocalProcess(command, self._log))

    def _command(self, module: str, *words: object) -> tuple[str, ...]:
        return (sys.executable, "-m", module, self._address, *map(str, words))

    def restart(self, child: Child) -> Child:
        """A new process in the place of one that died: a reducer goes on from its columns, a worker from its standing."""
        worker = child.role == "worker"
        fresh = self._worker(child.index) if worker else self._reducer(child.index)
        (self.workers if worker else self.reducers)[child.index] = fresh
        return fresh

    def end(self, patience_s: float) -> None:
        """Close every standard input, wait, then kill what is left."""
        for child in self.all:
            child.process.let_go()
        until = time.monotonic() + patience_s
        for child in self.all:
            if child.process.wait(max(0.0, until - time.monotonic())) is None:
                child.process.kill()
        self._engine.close()
        self.shared.close()


def _engine(plan: Plan) -> tuple[ShardEngine, str]:
    """What places the shards, and its name in messages.

    Raises:
        AiperfError: It can't be had.
    """
    if plan.engine is None:
        return Local(), "the local engine"
    name = who(plan.engine)
    made = load(plan.engine)
    with blamed(name, "can't be used"):
        engine: ShardEngine = made(plan.plugin_options(plan.engine))
    return engine, name
