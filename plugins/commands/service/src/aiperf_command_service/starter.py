"""A program of a run that has imported what runs need before one is there, so that its load begins as soon as any other's.

python -m aiperf_command_service.starter PARENT DESCRIPTOR [WORD ...]: orders come by the socket *DESCRIPTOR*, a line each.  The
words make the command line, which others see, as long as that of a run.

It has the environment and the working directory of runs, and has read nothing of any.  Checks are made by forks, each with
bounds of its own: what a file does to one is gone with it.  Where anything has been installed or changed since it began, it
begins anew with its first order.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import runpy
import select
import signal
import socket
import sys
from importlib import import_module
from typing import NoReturn, TypeAlias

import msgspec
from aiperf.parts.loading import IMPORTS

from aiperf_command_service.checking import bounded, check_in_memory
from aiperf_command_service.messages import Ask, Begin, Check, Order

_CHECK_NICE = 5
"""How far a check stands back: behind whatever runs."""
_PLAIN = b"""benchmark:
  models: [m]
  endpoint: {url: "http://127.0.0.1:9", streaming: true}
  tokenizer: {name: builtin}
  datasets: [{name: main, type: synthetic, prompts: {isl: 8, osl: 8}}]
  phases: [{name: profiling, type: concurrency, concurrency: 1, requests: 1}]
"""
"""A run that nobody starts: reading it imports what reading most files takes."""
_PDEATHSIG = 1
"""Number of an option of prctl(2)."""


_decode = msgspec.json.Decoder(Order).decode
Stamps: TypeAlias = dict[str, tuple[int, int]]


def end_with(parent: int) -> None:
    """Get TERM once the process *parent* is gone, so that a killed service leaves no load behind."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


def warm() -> Stamps:
    """Import what runs need, and leave no thread; stamps of what was looked at."""
    check_in_memory(Ask(results=os.devnull, trusted=True, content=_PLAIN))
    with contextlib.suppress(ImportError):
        import_module("aiperf.run.run")  # what the command imports once its line is read
    IMPORTS.rest()
    gc.collect()
    return stamps()


def stamps() -> Stamps:
    """Time and size of each module's file, and of each folder that modules are sought in."""
    files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    found: Stamps = {}
    for path in {*filter(None, files), *sys.path}:
        with contextlib.suppress(OSError):
            about = os.stat(path)  # noqa: PTH116  of a thousand files
            found[path] = about.st_mtime_ns, about.st_size
    return found


def _answer(ask: Ask, orders: socket.socket) -> None:
    """Check a file in a fork."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.nice(_CHECK_NICE)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):  # what a plugin prints is no answer, and no word of a run
                os.dup2(null, stream)
            orders.sendall(msgspec.json.encode(bounded(ask)) + b"\n")
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1]:
        orders.sendall(b"\n")


def _become(order: Begin) -> NoReturn:
    for name in os.environ.keys() - order.variables.keys():
        del os.environ[name]
    os.environ.update(order.variables)
    sys.argv[:] = ["aiperf", *order.words]
    runpy.run_module("aiperf", run_name="__main__", alter_sys=True)
    raise SystemExit(0)  # where it has not done so itself


def main(words: list[str]) -> None:
    parent, descriptor = map(int, words[:2])
    end_with(parent)
    before = warm()
    orders = socket.socket(fileno=descriptor)
    file = orders.makefile("rb")
    while True:
        select.select([orders], [], [])
        if stamps() != before:
            os.set_inheritable(descriptor, True)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        line = file.readline()
        if not line:
            break
        order = _decode(line)
        if isinstance(order, Check):
            _answer(order.ask, orders)
        else:
            file.close()
            orders.close()
            _become(order)


if __name__ == "__main__":
    main(sys.argv[1:])
