"""Processes that are forked ahead: they have what this one has imported, which takes a new interpreter 60 ms of a core.

A fork is safe where no thread runs, and takes 5 ms where little is imported.  So a run forks what its companions will start at
its begin.  Each waits for the module that it is to run, and is then as one of :func:`aiperf.processes.local.module_command`: in
a group of its own, with two pipes, the run's log, and without signal handlers, open files and secrets in the environment.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

from aiperf import environment, logs
from aiperf.processes import title

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.0005, 0.02


class Spare:
    """A forked process that waits; from :meth:`begin` on it is used as a ``subprocess.Popen``.

    stdin: its standard input.  replies: the descriptor from which its replies are read.
    """

    def __init__(self) -> None:
        inbox, to = os.pipe()
        self.replies, reply = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _live(inbox, reply)
        os.close(inbox)
        os.close(reply)
        self.stdin: IO[bytes] | None = os.fdopen(to, "wb", buffering=0)
        self.returncode: int | None = None

    def begin(self, command: tuple[str, ...], module: str, log: Path | None) -> None:
        """Let it call *module*'s ``main`` with the descriptor of replies.  command: the one that it stands for."""
        assert self.stdin is not None
        about = [command, module, None if log is None else str(log), environment.for_children()]
        with contextlib.suppress(OSError):  # it was killed
            self.stdin.write(json.dumps(about).encode() + b"\n")

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
        self.stdin.close()
        os.close(self.replies)
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


def _live(inbox: int, reply: int) -> NoReturn:
    """The forked process.  It leaves without unwinding the parent's stack."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        gc.freeze()
        os.dup2(inbox, 0)
        _close_all_but(0, 1, 2, reply)
        logs.forget()
        code = _work(_first_line(), reply)
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


def _work(about: bytes, reply: int) -> int:
    if not about:
        return 0
    command, module, log, variables = json.loads(about)
    if log is not None:
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for name in set(os.environ) - set(variables):
        del os.environ[name]
    words = [*command, str(reply)]
    sys.orig_argv[:], sys.argv[:] = words, [module, str(reply)]
    title.show(words)
    from importlib import import_module

    import_module(module).main([str(reply)])
    return 0


def _first_line() -> bytes:
    """The first line of the standard input, and no byte behind it; empty where there is none."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line if byte else b""


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
