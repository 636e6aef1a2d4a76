"""What a site keeps from plan to plan: its processes, what they share, and files of the data set."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import zmq

from aiperf.processes import control, local
from aiperf.sites import messages
from aiperf.sites.channel import SiteLine
from aiperf.sites.kept_files import KeptFiles
from aiperf.worker.shared import Shared

_RELEASE_S = 5.0
"""Longest time until a process has dropped its plan; then it is killed."""
_DOWN_S = 5.0
"""Between two plans the run is gone when it can't be reached for so long: it may be busy, and say nothing, for hours."""
_LOOK_MS, _DOWN_MS = 20, 500
_END_S = 2.0


class SiteHome:
    """*directory*: of the site.  *inherited*: descriptors that workers keep open.

    place: the journal of the plan.  shared: what the workers share, from the first order on.  files: those of the plans before.
    """

    def __init__(self, line: SiteLine, board: control.Switchboard, directory: Path, inherited: Sequence[int] = ()) -> None:
        self._line, self._board, self._directory, self._inherited = line, board, directory, inherited
        self._processes: dict[tuple[str, int], local.LocalProcess] = {}
        self._released: set[tuple[str, int]] = set()
        self._plans = 0
        self.place = directory
        self.files = KeptFiles(directory / "files")
        self.shared: Shared | None = None

    def journal(self) -> Path:
        """An empty directory for the journal of the next plan."""
        self.place = self._directory / f"plan-{self._plans}" / "journal"
        self._plans += 1
        self.place.mkdir(mode=0o700, parents=True)
        return self.place

    def share(self, phases: int, *, several: bool, claims: bool) -> Shared:
        """What the workers share, of so many *phases* at least; as of :class:`Shared`."""
        if self.shared is None:
            self.shared = Shared(phases, several=several, claims=claims)
        return self.shared

    def waiting(self, role: str, index: int) -> local.LocalProcess | None:
        """The process that a plan before has left, which waits for another one; None where there is none."""
        process = self._processes.get((role, index))
        if process is None or (role, index) not in self._released or process.poll() is not None:
            return None
        self._released.discard((role, index))
        return process

    def start(self, role: str, index: int) -> local.LocalProcess:
        """A new process."""
        assert self.shared is not None, "the site has its order"
        if role == "reducer":
            command, fds = local.module_command("aiperf.run.reducer_process", self._board.address, index), []
        else:
            fds = self.shared.fds
            words = ",".join(map(str, fds))
            command = local.module_command("aiperf.worker.process", self._board.address, index, words)
            fds = [*fds, *self._inherited]
        process = self._processes[role, index] = local.LocalProcess(command, None, fds, sends=role == "worker")
        self._released.discard((role, index))
        return process

    def released(self, message: control.Released) -> None:
        """The process has dropped its plan."""
        self._released.add((message.role, message.index))

    def rest(self, journal: Path, files: Iterable[messages.SentFile]) -> bool:
        """A plan is over: wait for the next one; whether there is one.  *journal*: of the plan.  *files*: that it was sent."""
        poller = zmq.Poller()
        poller.register(0, zmq.POLLIN)
        self._line.wake(poller, events=True)
        if not self._await_released(poller):
            return False
        self._line.send(messages.PlanDropped())
        self.files.keep(journal, files)
        shutil.rmtree(journal.parent, ignore_errors=True)
        down_s: float | None = None
        while True:
            ready = dict(poller.poll(None if down_s is None else _DOWN_MS))
            if 0 in ready and not os.read(0, 4096):
                return False
            while (message := self._line.receive()) is not None:
                if isinstance(message, messages.NextPlan | messages.SiteEnd):
                    while self._board.receive(0) is not None:  # of a process that was killed, on the plan before
                        pass
                    return isinstance(message, messages.NextPlan)
            down_s = None if self._line.connected else down_s or time.monotonic()
            if down_s is not None and time.monotonic() - down_s > _DOWN_S:
                print("site: the run is gone", file=sys.stderr)
                return False

    def _await_released(self, poller: zmq.Poller) -> bool:
        """Let processes drop the plan, and kill those that don't; False where the run has gone meanwhile."""
        until_s = time.monotonic() + _RELEASE_S
        while busy := self._busy():
            if 0 in dict(poller.poll(_LOOK_MS)) and not os.read(0, 4096):
                return False
            while (said := self._board.receive(0)) is not None:
                if isinstance(said, control.Released):
                    self.released(said)
                if not isinstance(said, control.Unwritten):
                    self._line.send(messages.FromChild(control.encode(said)))
            while (message := self._line.receive()) is not None:
                if isinstance(message, messages.ToChild):
                    self._board.send(f"{message.role}-{message.index}", control.decode(message.body))
                elif isinstance(message, messages.SiteEnd):
                    return False
            self._line.tend()
            if time.monotonic() > until_s:
                for process in busy:
                    process.kill()
        return True

    def _busy(self) -> list[local.LocalProcess]:
        return [each for key, each in self._processes.items() if key not in self._released and each.poll() is None]

    def end(self) -> None:
        """End every process."""
        for process in self._processes.values():
            process.let_go()
        until_s = time.monotonic() + _END_S
        for process in self._processes.values():
            if process.wait(max(0.0, until_s - time.monotonic())) is None:
                process.kill()
        if self.shared is not None:
            self.shared.close()
