"""Processes of this machine: reducers, and shards where nobody wants them elsewhere."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aiperf.shards import Shard, ShardEngine, ShardStart


class LocalProcess(Shard):
    """A child.  Its standard input is a pipe that only this process holds open: it ends with us, however we end."""

    def __init__(self, command: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=descriptors,
                process_group=0,  # Ctrl-C reaches the parent alone
            )

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def let_go(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Local(ShardEngine):
    """``--engine local``: a process for each shard."""

    shares_memory = True

    def start(self, start: ShardStart) -> Shard:
        return LocalProcess(start.command, start.log, start.descriptors)
