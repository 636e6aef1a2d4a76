"""Workers, reducers and their control channel: for one plan, or for one plan after the other."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from aiperf import environment
from aiperf.planning.kernel_options import KernelOptions
from aiperf.processes import control
from aiperf.run.children import Children
from aiperf.run.start import Directories, switchboard
from aiperf.sdk.plan import Plan

_END_S = 2.0


class Fleet:
    """The processes of a run.  *kept*: those of one plan run the next one, too.

    They do only where a new process would find the same: environment, working directory, mask of new files, channel.  Shards of
    an engine plugin are never kept.

    resting: whether no plan is under way, and processes wait for the next one.  prepare, last_message: the first and the last
    message of a plan to each of its processes.
    """

    board: control.Switchboard
    children: Children

    def __init__(self, *, kept: bool = False) -> None:
        self._kept = kept
        self._stack = contextlib.ExitStack()
        self._surroundings: Any = None
        self.resting = False

    def begin(self, plan: Plan, kernel: KernelOptions, directories: Directories) -> None:
        """Make channel and processes ready for the plan.

        Raises:
            AiperfError: The channel or the engine can't be used.
        """
        paths = directories.journal, directories.log_file
        surroundings, phases = _surroundings(plan, kernel), len(plan.load.phases)
        if self.resting and surroundings == self._surroundings and phases <= self.children.shared.phases:
            self.children.begin(plan, *paths)
        else:
            self.close()
            self.board = self._stack.enter_context(switchboard(kernel.zmq_host, kernel.zmq_ipc_path))
            self.children = Children(plan, self.board.address, *paths, kept=self._kept)
            self._stack.callback(self.children.end, _END_S)
        self.resting, self._surroundings = False, surroundings
        again = self._kept and self.children.local
        self.prepare = control.Prepare(str(directories.journal), str(directories.log_file) if again else "")
        self.last_message = control.Release() if again else control.Exit()

    def rest(self) -> None:
        """The plan is over, and each of its processes has got :attr:`last_message`."""
        self.resting = isinstance(self.last_message, control.Release)

    def forget(self) -> None:
        """In a forked process: the children end with the process that started them, even where this one lives on."""
        if self.resting:
            self.children.let_go()

    def close(self) -> None:
        """End all processes, and close the channel.  May be called again."""
        self.resting = False
        self._stack.close()


def _surroundings(plan: Plan, kernel: KernelOptions) -> Any:
    """What a process keeps from its start on."""
    mask, here = os.umask(0o077), Path().stat()
    os.umask(mask)
    channel = kernel.zmq_host, kernel.zmq_ipc_path
    return plan.plugins.engine, channel, environment.for_children(sends=True), mask, here.st_dev, here.st_ino
