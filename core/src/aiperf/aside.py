"""A process beside the run that a plugin has to itself.

Messages to it are lines of JSON on its standard input, which ends when the run does, however that ends; its own go to a pipe
whose descriptor is the first word of its command line.  Neither side waits for the other.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec

_MOST_PENDING = 1 << 20
"""Bytes that wait for a process which doesn't read; more are dropped."""


class Aside:
    """The run's end.  *output*: where its standard output and error go, None is to our own.

    *foreground*: it may read the terminal, and must see to it that Ctrl-C doesn't end it.
    """

    def __init__(
        self, module: str, words: Sequence[str] = (), *, output: IO[bytes] | None = None, foreground: bool = False
    ) -> None:
        read, write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(write), *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[write],
                process_group=None if foreground else 0,
            )
        finally:
            os.close(write)
        assert self._process.stdin is not None
        self._to, self._from = self._process.stdin.fileno(), read
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._pending = bytearray()
        self._heard = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def behind(self) -> bool:
        """Whether it has not read what it was told."""
        self._flush()
        return bool(self._pending)

    def tell(self, message: Any) -> None:
        """Say it as soon as it reads; one that never does hears no more."""
        if len(self._pending) < _MOST_PENDING:
            self._pending += msgspec.json.encode(message) + b"\n"
        self._flush()

    def heard(self, wait_s: float = 0.0) -> list[bytes]:
        """The lines it said since the last call; waits so long for the first."""
        if wait_s and b"\n" not in self._heard:
            select.select([self._from], [], [], wait_s)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._from, 1 << 16):
                self._heard += piece
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard = bytearray(rest)
        return lines

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    def end(self, patience_s: float) -> None:
        """Let it know that it is over, wait so long, then kill it."""
        until = time.monotonic() + patience_s
        while self.behind and self.poll() is None and time.monotonic() < until:
            select.select([], [self._to], [], max(0.0, until - time.monotonic()))
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """After :meth:`end` and the last words."""
        if self._from >= 0:
            os.close(self._from)
            self._from = -1

    def _flush(self) -> None:
        while self._pending:
            try:
                written = os.write(self._to, self._pending)
            except BlockingIOError:
                return
            except (OSError, ValueError):  # it is gone, or we have let it go
                self._pending.clear()
                return
            del self._pending[:written]


def say(to: int, message: Any) -> None:
    """The other end's words to the run."""
    with contextlib.suppress(OSError):  # the run is gone: so will this process be
        os.write(to, msgspec.json.encode(message) + b"\n")


class Heard:
    """What the run says, at the other end: *take* gets each line, until the run lets go."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._part = b""
        self.over = False

    def wait(self, seconds: float | None) -> None:
        """For so long at most (None: without end), or until something was said."""
        if not select.select([0], [], [], seconds)[0]:
            return
        piece = os.read(0, 1 << 16)
        self.over = not piece
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines:
            self._take(line)
