"""Processes of this machine: their command line, their start, their end, and what a plugin's own process says to the run.

A display or a telemetry source runs beside the run, in a process of its own.  Both sides write lines of JSON: the run to the
process's standard input, the process to a pipe whose descriptor is the first word of its command line.  Neither side waits for
the other.  Workers and reducers use :mod:`aiperf.processes.control`, whose import of ZeroMQ these processes don't need.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aiperf import environment
from aiperf.cores import level_with_parent, set_session_nice
from aiperf.processes.spare import SPARES, Spare
from aiperf.sdk.engine import Shard, ShardEngine, ShardStart

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run."""


def ignore_endings() -> None:
    """Ignore the signals that end a run: the parent decides what they mean, and tells its children."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def end_with_parent(pipe: int = 0) -> None:
    """Let the system kill this process, and the group that it leads, at once when the other end of *pipe* is closed.

    For a process that may be killed at any instant, and has nobody to write to without its parent: it need not come to look,
    which takes a while in a long step of code without a core.  Nothing else may happen to *pipe* meanwhile.  Elsewhere than on
    Linux nothing happens.
    """
    if sys.platform == "linux":
        fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpid() if os.getpgrp() == os.getpid() else os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
        closed = select.poll()
        closed.register(pipe, 0)
        if closed.poll(0):  # it was closed before
            os.kill(os.getpid(), signal.SIGKILL)


def end_without_reader(replies: int) -> None:
    """Wait until nobody reads the pipe *replies* any more; then kill this process, and the group that it leads.

    For a thread of a process whose calls may never return.  No signal of the pipe, as in :func:`end_with_parent`: it comes with
    each reply that is read, too.
    """
    gone = select.poll()
    gone.register(replies, 0)
    gone.poll()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


_MODULE = (sys.executable, "-P", "-m")


def module_command(module: str, *words: object) -> tuple[str, ...]:
    """The command line that runs *module* in an interpreter of its own.

    ``-P`` keeps the working directory off ``sys.path``: a user's ``heapq.py`` would run in the process that holds the API key.
    """
    return (*_MODULE, module, *map(str, words))


def fate(code: int | None) -> str:
    """How a process ended, from its exit code: ``exited with 1``, ``was killed by SIGKILL``."""
    if code is None:
        return "is running"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"exited with {code}"


class LocalProcess(Shard):
    """A child process; one that was forked ahead, where there is one and the command is a module's.

    Only the run holds the other end of its standard input, so it ends with the run, however that ends.

    log: the file to which its output and errors are appended; None leaves them to the run's own.
    descriptors: open ones that the child inherits.
    foreground: the child may read the terminal; Ctrl-C reaches it, and it must ignore it.  sends: it sends the load.
    secrets: it gets the variables of the environment with keys of other programs, which no other child has.
    """

    def __init__(
        self, command: Sequence[str], log: Path | None, descriptors: Sequence[int] = (), *, foreground: bool = False,
        sends: bool = False, secrets: bool = False,
    ) -> None:  # fmt: skip
        environ = environment.for_children(sends=sends, secrets=secrets)
        self._process: subprocess.Popen[bytes] | Spare
        spare = None if foreground or secrets or tuple(command[:3]) != _MODULE else SPARES.taken()
        if spare is not None:
            self._process = spare
            spare.begin(command, log, environ, descriptors)
            return
        with contextlib.nullcontext() if log is None else log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environ, pass_fds=descriptors,
                process_group=None if foreground else 0,
            )  # fmt: skip

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def give(self, data: bytes) -> None:
        """Write some bytes to its standard input, which stays open."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended
                self._process.stdin.write(data)
                self._process.stdin.flush()

    def let_go(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end_soon(self) -> None:
        """Kill it, and don't wait."""
        self._process.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def raise_priority(self) -> bool:
        """Give its session and threads the priority of this one's, where they have a lower one; whether all have it now."""
        if sys.platform != "linux":
            return True
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        raised = level_with_parent(self.pid) is not None
        for entry in Path(f"/proc/{self.pid}/task").iterdir():
            thread = int(entry.name)
            try:
                if os.sched_getscheduler(thread) == os.SCHED_IDLE:
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
                if os.getpriority(os.PRIO_PROCESS, thread) > nice:
                    os.setpriority(os.PRIO_PROCESS, thread, nice)
            except ProcessLookupError:  # it has just ended
                continue
            except PermissionError:
                raised = False
        return raised

    def lower_priority(self) -> bool:
        """Give its threads idle priority, and the session that it leads the lowest one; False: the system allows that later."""
        if sys.platform != "linux":
            return True
        with contextlib.suppress(OSError):  # it has just ended, or one of its threads has
            for entry in Path(f"/proc/{self.pid}/task").iterdir():
                os.sched_setscheduler(int(entry.name), os.SCHED_IDLE, os.sched_param(0))
        return set_session_nice(self.pid) is not None


class Local(ShardEngine):
    """``--engine local``: a process for each shard."""

    shares_memory = True

    def start(self, start: ShardStart) -> Shard:
        return LocalProcess(start.command, start.log, start.descriptors, sends=True)


_MOST_PENDING = 1 << 20
"""Bytes that wait for a process which doesn't read; more are dropped."""


_WIDE_BYTES = 1 << 20


_SIDES: weakref.WeakSet[SideProcess] = weakref.WeakSet()
"""Those of this process, which a fork shares."""


def let_all_go() -> None:
    """In a forked process that goes on: plugins' own processes end with the one that started them."""
    for process in list(_SIDES):
        process.let_go()


class SideProcess(LocalProcess):
    """A plugin's own process beside the run, with a pipe for its replies.

    secrets: as in :class:`LocalProcess`.
    """

    def __init__(self, module: str, *, log: Path | None = None, foreground: bool = False, secrets: bool = False) -> None:
        read, write = os.pipe()
        try:
            super().__init__(module_command(module, write), log, [write], foreground=foreground, secrets=secrets)
        finally:
            os.close(write)
        assert self._process.stdin is not None
        self._to, self._from = self._process.stdin.fileno(), read
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._pending, self._received = bytearray(), b""
        _SIDES.add(self)
        self.ended_replies = False
        """Whether the process has closed its pipe of replies."""

    @property
    def backlogged(self) -> bool:
        """Whether messages still wait to be read."""
        self._flush()
        return bool(self._pending)

    @property
    def replies(self) -> int:
        """The descriptor that is readable when a reply has come, or the process has closed its pipe."""
        return self._from

    @property
    def waiting(self) -> int:
        """Bytes that wait here until the pipe takes them."""
        return len(self._pending)

    @property
    def unread(self) -> int:
        """Bytes of messages that the process has not read, those that wait here included."""
        found = bytearray(4)
        with contextlib.suppress(OSError, ValueError):  # it is gone, or its input is closed
            fcntl.ioctl(self._to, termios.FIONREAD, found)
        return len(self._pending) + int.from_bytes(found, sys.byteorder)

    def widen(self) -> None:
        """Let the pipe hold a large message, where the system allows it."""
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self._to, fcntl.F_SETPIPE_SZ, _WIDE_BYTES)

    def send(self, message: Any) -> None:
        """Queue the message.  A process that never reads gets no more once 1 MiB waits."""
        self.send_encoded(msgspec.json.encode(message) + b"\n")

    def send_encoded(self, line: bytes) -> None:
        """Queue a line, as :meth:`send`."""
        if len(self._pending) < _MOST_PENDING:
            self._pending += line
        self._flush()

    def receive(self, wait_s: float = 0.0) -> list[bytes]:
        """The lines that have come since the last call; waits up to *wait_s* for the first."""
        if wait_s and b"\n" not in self._received:
            select.select([self._from], [], [], wait_s)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._from, 1 << 16):
                self._received += piece
            self.ended_replies = True
        *lines, self._received = self._received.split(b"\n")
        return lines

    def receive_some(self) -> list[bytes]:
        """The lines that are there, of at most 64 KiB: whoever floods the pipe fills it."""
        with contextlib.suppress(BlockingIOError, OSError):
            self._received += os.read(self._from, 1 << 16)
        *lines, self._received = self._received.split(b"\n")
        self._received = self._received if len(self._received) <= _MOST_PENDING else b""
        return lines

    def finish_input(self) -> None:
        """Send what waits, if the process takes it at once, and close its input."""
        if not self.backlogged:
            self.let_go()

    def end(self, patience_s: float) -> None:
        """Send what waits, close the process's input, wait, then kill it."""
        until = time.monotonic() + patience_s
        while self.backlogged and self.poll() is None and time.monotonic() < until:
            select.select([], [self._to], [], max(0.0, until - time.monotonic()))
        self.let_go()
        if self.wait(max(0.0, until - time.monotonic())) is None:
            self.kill()

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
    """The process's side: *take* is called with each line of the run; *over* is set when the run closes the pipe.

    awake: a pipe, not blocking, into which a thread writes to end a wait early.
    """

    def __init__(self, take: Callable[[bytes], None], awake: int | None = None) -> None:
        self._take, self._part, self.over = take, b"", False
        self._awake = [] if awake is None else [awake]

    def wait(self, seconds: float | None) -> None:
        """Wait for the next lines, for up to *seconds* (None: without limit)."""
        ready = select.select([*([] if self.over else [0]), *self._awake], [], [], seconds)[0]
        for pipe in set(ready).intersection(self._awake):
            os.read(pipe, 1 << 16)
        if 0 not in ready:
            return
        piece = os.read(0, 1 << 16)
        self.over = not piece
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines:
            self._take(line)
