"""A plugin's own process beside the run: a display, a telemetry source.

Both sides write lines of JSON: the run to the process's standard input, the process to a pipe whose descriptor is the first
word of its command line.  Neither side waits for the other.  Workers and reducers use :mod:`aiperf.processes.control`, whose
import of ZeroMQ these processes don't need.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from aiperf.processes.local import LocalProcess, module_command

_MOST_PENDING = 1 << 20
"""Bytes that wait for a process which doesn't read; more are dropped."""


class SideProcess:
    """The run's side of the process.  *log* and *foreground* as in :class:`LocalProcess`."""

    def __init__(self, module: str, *, log: Path | None = None, foreground: bool = False) -> None:
        read, write = os.pipe()
        try:
            self._process = LocalProcess(module_command(module, write), log, [write], foreground=foreground)
        finally:
            os.close(write)
        self._to, self._from = self._process.stdin, read
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._pending, self._received = bytearray(), b""

    @property
    def backlogged(self) -> bool:
        """Whether messages still wait to be read."""
        self._flush()
        return bool(self._pending)

    def send(self, message: Any) -> None:
        """Queue the message.  A process that never reads gets no more once 1 MiB waits."""
        if len(self._pending) < _MOST_PENDING:
            self._pending += msgspec.json.encode(message) + b"\n"
        self._flush()

    def receive(self, wait_s: float = 0.0) -> list[bytes]:
        """The lines that have come since the last call; waits up to *wait_s* for the first."""
        if wait_s and b"\n" not in self._received:
            select.select([self._from], [], [], wait_s)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._from, 1 << 16):
                self._received += piece
        *lines, self._received = self._received.split(b"\n")
        return lines

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def end(self, patience_s: float) -> None:
        """Send what waits, close the process's input, wait, then kill it."""
        until = time.monotonic() + patience_s
        while self.backlogged and self.poll() is None and time.monotonic() < until:
            select.select([], [self._to], [], max(0.0, until - time.monotonic()))
        self._process.let_go()
        if self._process.wait(max(0.0, until - time.monotonic())) is None:
            self._process.kill()

    def close(self) -> None:
        """Close the pipe of replies.  To be called after :meth:`end` and the last :meth:`receive`."""
        os.close(self._from)

    def _flush(self) -> None:
        while self._pending:
            try:
                del self._pending[: os.write(self._to, self._pending)]
            except BlockingIOError:
                return
            except (OSError, ValueError):  # the process is gone, or its input is closed
                self._pending.clear()


def send_reply(descriptor: int, message: Any) -> None:
    """Send *message* from the process to the run."""
    with contextlib.suppress(OSError):  # the run is gone, and this process ends soon
        os.write(descriptor, msgspec.json.encode(message) + b"\n")


class Inbox:
    """The process's side: *take* is called with each line of the run; *over* is set when the run closes the pipe."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take, self._part, self.over = take, b"", False

    def wait(self, seconds: float | None) -> None:
        """Wait for the next lines, for up to *seconds* (None: without limit)."""
        if not select.select([0], [], [], seconds)[0]:
            return
        piece = os.read(0, 1 << 16)
        self.over = not piece
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines:
            self._take(line)
