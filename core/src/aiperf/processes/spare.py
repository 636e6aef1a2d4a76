"""Processes that are forked ahead: they have what this one has imported, which takes a new interpreter 60 ms of a core.

A fork is safe where no thread runs, and takes 5 ms where little is imported.  So a run forks at its begin what it will start:
workers, reducers, what its companions and views ask for.  Each waits for the command line that it stands for, and is then as
one that :class:`aiperf.processes.local.LocalProcess` starts anew: in a group of its own, with an input, a log and descriptors
of its own, and without signal handlers, open files and secrets of this one.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from aiperf import logs
from aiperf.processes import title

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.0005, 0.02
_TAKE_S = 5.0
"""Longest time until a process takes what it is to run; one that was stopped is as one that was killed."""
_MOST_DESCRIPTORS = 64


class Spare:
    """A forked process that waits; from :meth:`begin` on it is used as a ``subprocess.Popen``.  stdin: its standard input."""

    def __init__(self) -> None:
        inbox, to = os.pipe()
        self._orders, orders = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _live(inbox, orders)
        os.close(inbox)
        orders.close()
        self.stdin: IO[bytes] | None = os.fdopen(to, "wb", buffering=0)
        self.returncode: int | None = None

    def begin(
        self, command: Sequence[str], log: Path | None, variables: Mapping[str, str], descriptors: Sequence[int] = ()
    ) -> None:  # fmt: skip
        """Let it do what *command* (:func:`aiperf.processes.local.module_command`) does: call ``main`` with the words.

        log: its output and errors are appended to it; None leaves them to this process's own.  variables: its environment, of
        this process's.  descriptors: open ones of this process, which it has under the same numbers.
        """
        about = json.dumps([log is not None, list(command), [*variables]]).encode()
        self._orders.settimeout(_TAKE_S)
        # The log is opened here: a run that can't begin leaves its directory as it was, and nobody makes a file there later.
        with contextlib.nullcontext() if log is None else log.open("ab") as output:
            files = {} if output is None else {1: output.fileno()}
            files |= {descriptor: descriptor for descriptor in descriptors}
            with contextlib.suppress(OSError), self._orders as orders:  # it was killed
                socket.send_fds(orders, [json.dumps([*files]).encode() + b"\n"], [*files.values()])
                orders.sendall(about)

    def poll(self) -> int | None:
        if self.returncode is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """
        Raises:
            subprocess.TimeoutExpired: It doesn't end in time.
        """
        until_s, pause_s = None if timeout is None else time.monotonic() + timeout, _FIRST_WAIT_S
        while (code := self.poll()) is None:
            left_s = pause_s if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a process that was forked", timeout or 0.0)
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _LONGEST_WAIT_S)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End a process that was not needed."""
        assert self.stdin is not None
        self._orders.close()
        self.stdin.close()
        self.wait()


class Spares:
    """The processes that wait."""

    def __init__(self) -> None:
        self._waiting: list[Spare] = []

    @contextlib.contextmanager
    def forked(self, count: int) -> Iterator[None]:
        """In the block *count* processes wait; none where a thread runs, whose locks a fork would keep for ever."""
        if count and _alone():
            self._waiting += [Spare() for _ in range(count)]
        try:
            yield
        finally:
            while self._waiting:
                self._waiting.pop().close()

    def taken(self) -> Spare | None:
        """A process that waited; None where none does."""
        return self._waiting.pop() if self._waiting else None


SPARES = Spares()
"""Those of this process."""


def _alone() -> bool:
    """Whether this is the only thread, those of other languages included."""
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  called once a run
    return threading.active_count() == 1


def _live(inbox: int, orders: socket.socket) -> NoReturn:
    """The forked process.  It leaves without unwinding the parent's stack."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        gc.freeze()
        os.dup2(inbox, 0)
        _close_all_but(0, 1, 2, orders.fileno())
        logs.forget()
        about = _taken(orders)
        code = _work(about) if about else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _taken(orders: socket.socket) -> bytes:
    """What the process is to run; empty where it is not needed.  Received descriptors have their numbers then."""
    begun, received, _, _ = socket.recv_fds(orders, 1 << 16, _MOST_DESCRIPTORS)
    pieces = [begun]
    while pieces[-1]:
        pieces.append(orders.recv(1 << 16))
    line, _, about = b"".join(pieces).partition(b"\n")
    numbers = json.loads(line or b"[]")
    kept = orders.detach()
    above = max(numbers, default=0) + 1  # they wait there until each can get its own: few files may be open
    waiting = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for descriptor in received]
    for descriptor in (kept, *received):
        os.close(descriptor)
    for descriptor, number in zip(waiting, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return about


def _work(about: bytes) -> int:
    logged, command, variables = json.loads(about)
    if logged:
        os.dup2(1, 2)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    dropped = {name: os.environ[name] for name in set(os.environ) - set(variables)}
    for name in dropped:
        del os.environ[name]
    module, *words = command[3:]
    sys.orig_argv[:], sys.argv[:] = command, [module, *words]
    title.show(command, dropped)
    from importlib import import_module

    import_module(module).main(words)
    return 0


def _close_all_but(*kept: int) -> None:
    try:
        known = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208
    except OSError:
        os.closerange(3, min(kept[-1], os.sysconf("SC_OPEN_MAX")))
        os.closerange(kept[-1] + 1, os.sysconf("SC_OPEN_MAX"))
        return
    for descriptor in known:
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
