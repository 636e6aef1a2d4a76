"""Processes of this machine: their command line, their start, their end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aiperf.sdk.engine import Shard, ShardEngine, ShardStart


def module_command(module: str, *words: object) -> tuple[str, ...]:
    """The command line that runs *module* in an interpreter of its own.

    ``-P`` keeps the working directory off ``sys.path``: a user's ``heapq.py`` would run in the process that holds the API key.
    """
    return (sys.executable, "-P", "-m", module, *map(str, words))


def fate(code: int | None) -> str:
    """How a process ended, from its exit code: ``exited with 1``, ``was killed by SIGKILL``."""
    if code is None:
        return "is running"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"exited with {code}"


class LocalProcess(Shard):
    """A child process.  Only the run holds the other end of its standard input, so it ends with the run, however that ends.

    log: the file to which its output and errors are appended; None leaves them to the run's own.
    descriptors: open ones that the child inherits.
    foreground: the child may read the terminal; Ctrl-C reaches it, and it must ignore it.
    """

    def __init__(
        self, command: Sequence[str], log: Path | None, descriptors: Sequence[int] = (), *, foreground: bool = False
    ) -> None:
        with contextlib.nullcontext() if log is None else log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output,
                pass_fds=descriptors, process_group=None if foreground else 0,
            )  # fmt: skip

    @property
    def stdin(self) -> int:
        """The descriptor that writes to its standard input.

        Raises:
            ValueError: It is closed.
        """
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

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
