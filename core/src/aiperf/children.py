"""The processes of a run: workers and reducers, started early so that they import while the data set is built."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from aiperf.engine.slots import make_counter_fd, make_slots_fd
from aiperf.plan import Plan


class Child:
    """One process, known to the control channel as *identity* (``worker-0``)."""

    def __init__(self, role: str, index: int, process: subprocess.Popen[bytes]) -> None:
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


class Children:
    """Starts, watches and ends them; never leaves one behind.

    Standard input of each is a pipe that only this process holds open: it ends with us, however we end.
    """

    def __init__(self, plan: Plan, address: str, journal: Path, log: Path) -> None:
        self._plan, self._address, self._journal, self._log = plan, address, journal, log
        self.slots: dict[int, int] = {}
        self._fds = self._shared_fds() if plan.workers > 1 else []
        self.workers = [self._worker(index) for index in range(plan.workers)]
        self.reducers = [self._reducer(index) for index in range(plan.reducers)]

    @property
    def all(self) -> list[Child]:
        return [*self.workers, *self.reducers]

    def _shared_fds(self) -> list[int]:
        """Per phase: ceiling (-1: none), arrivals, sessions."""
        fds = []
        for phase in self._plan.phases:
            ceiling = -1 if phase.concurrency is None else make_slots_fd(phase.concurrency)
            if ceiling >= 0:
                self.slots[phase.index] = ceiling
            fds += [ceiling, make_counter_fd(), make_counter_fd()]
        return fds

    def _worker(self, index: int) -> Child:
        words = [str(index), str(self._plan.workers), ",".join(map(str, self._fds))]
        return Child("worker", index, self._start("aiperf.engine.worker", words, [fd for fd in self._fds if fd >= 0]))

    def _reducer(self, index: int) -> Child:
        words = [str(index), str(self._plan.reducers), str(self._journal)]
        return Child("reducer", index, self._start("aiperf.reducer", words, []))

    def restart(self, child: Child) -> Child:
        """A new process in the place of a reducer that died; it goes on from its columns."""
        fresh = self._reducer(child.index)
        self.reducers[child.index] = fresh
        return fresh

    def _start(self, module: str, words: list[str], fds: list[int]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, self._address, *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=fds,
                process_group=0,  # Ctrl-C reaches the parent alone
            )

    def end(self, patience_s: float) -> None:
        """Close every standard input, wait, then kill what is left."""
        for child in self.all:
            if child.process.stdin is not None:
                with contextlib.suppress(OSError):
                    child.process.stdin.close()
        until = time.monotonic() + patience_s
        for child in self.all:
            try:
                child.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
        for fd in self._fds:
            if fd >= 0:
                os.close(fd)
        self._fds = []
