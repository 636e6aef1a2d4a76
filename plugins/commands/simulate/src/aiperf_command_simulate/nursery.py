"""Processes that begin in milliseconds: each is a fork of one that has imported what they need.

:class:`aiperf_command_simulate.testing.Nursery` starts this one with a socket.  A message there is a line of JSON,
:class:`Wish`, with three descriptors: standard output, standard error, and the pipe that tells the exit code.  The answer is a
line with the process id.  Forks that are left end with this process, and this process with the socket.

As a program it is the nursery of simulators; what is given are fields of ``SimulateOptions``.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import random
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypedDict

from aiperf.parts.tools import specs, validate

from aiperf_command_simulate.__main__ import main as serve
from aiperf_command_simulate.options import SimulateOptions

_MOST_BYTES = 1 << 20


class Wish(TypedDict):
    """A process: what its function is given, and the working directory and environment."""

    given: dict[str, Any]
    folder: str
    environment: dict[str, str]


def _child(play: Callable[[dict[str, Any]], int], wish: Wish, out: int, err: int) -> None:
    """The fork; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(wish["folder"])
        os.environ.clear()
        os.environ.update(wish["environment"])
        random.seed()
        code = play(wish["given"])
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # a process has no caller
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


class ForkServer:
    """The forks of this process, by id, each with the pipe for its exit code.  *play*: what a fork does; its exit code.

    Collections in forks copy no page of what is imported by now.
    """

    def __init__(self, asked: socket.socket, play: Callable[[dict[str, Any]], int]) -> None:
        gc.collect()
        gc.freeze()
        self._asked, self._play = asked, play
        self._forks: dict[int, int] = {}
        self._woken, self._wakes = os.pipe()
        for end in (self._woken, self._wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the tests

    def run(self) -> None:
        """Start what is asked for, until nobody asks any more."""
        while True:
            asked = self._asked.fileno()
            ready, _, _ = select.select([asked, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 1 << 12)
                self._bury()
            if asked in ready:
                data, files, _, _ = socket.recv_fds(self._asked, _MOST_BYTES, 3)
                while data and not data.endswith(b"\n"):
                    data += self._asked.recv(_MOST_BYTES)
                if not data:
                    break
                self._asked.sendall(b"%d\n" % self._fork(json.loads(data), files))
        for pid in self._forks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _fork(self, wish: Wish, files: list[int]) -> int:
        out, err, end = files
        pid = os.fork()
        if not pid:
            self._asked.close()
            for other in (end, self._woken, self._wakes, *self._forks.values()):
                os.close(other)
            _child(self._play, wish, out, err)
        os.close(out)
        os.close(err)
        self._forks[pid] = end
        return pid

    def _bury(self) -> None:
        while self._forks:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            end = self._forks.pop(pid)
            with contextlib.suppress(OSError):  # nobody asks
                os.write(end, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(end)


def _warm() -> None:
    """Import what a simulator imports."""
    from aiperf_command_simulate import process  # noqa: F401
    from aiperf_command_simulate.scenario import scenario
    from aiperf_command_simulate.server import Server

    if sys.platform == "win32":
        loop = asyncio.new_event_loop()
    else:
        import uvloop

        loop = uvloop.new_event_loop()
    given: dict[str, Any] = {"port": 0}  # without a value no pydantic is needed
    options, _ = validate(SimulateOptions, specs(SimulateOptions), given, {})
    Server(scenario(options), loop).close()
    loop.close()


def main() -> None:
    _warm()
    ForkServer(socket.socket(fileno=int(sys.argv[1])), serve).run()


if __name__ == "__main__":
    main()
