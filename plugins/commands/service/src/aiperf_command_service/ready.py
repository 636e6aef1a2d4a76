"""A program that waits for the next run while none is under way: it checks files, and becomes the run (``starter.py``)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import msgspec

from aiperf_command_service.messages import Ask, Begin, Check

CHECK_S = 60.0
_PIECE_BYTES = 1 << 16


class Waiting(NamedTuple):
    """The program, and where its orders go."""

    process: subprocess.Popen[bytes]
    orders: socket.socket

    def end(self) -> None:
        """Kill it and what it has forked."""
        self.orders.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()


class Ready:
    """Keeps one such program.  *launcher*: as of :meth:`Child.begin`; *surroundings*: environment and directory of runs.

    *words*: of a run's command line, which it has until a run is there.
    """

    def __init__(
        self, launcher: Executor, surroundings: Callable[[], tuple[Mapping[str, str], Path]], words: list[str]
    ) -> None:
        self._launcher, self._surroundings, self._words = launcher, surroundings, words
        self._waiting: Waiting | None = None
        self._checks = False

    async def prepare(self) -> None:
        """Start a program, unless one waits.  Without one, runs and checks begin anew: nothing depends on it."""
        if self._waiting is None:
            with contextlib.suppress(OSError):
                self._waiting = await asyncio.get_running_loop().run_in_executor(self._launcher, self._started)

    def _started(self) -> Waiting:
        variables, where = self._surroundings()
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            module = ["-P", "-m", "aiperf_command_service.starter", str(os.getpid()), str(number)]
            process = subprocess.Popen(
                [sys.executable, *module, *self._words], cwd=where, env=dict(variables), pass_fds=(number,),
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        ours.setblocking(False)
        return Waiting(process, ours)

    async def check(self, ask: Ask) -> bytes | None:
        """Its answer, encoded; empty where the check was ended by its bounds; None where nothing waits or another is checked.

        Raises:
            TimeoutError: After a minute.
        """
        waiting = self._waiting
        if waiting is None or self._checks:
            return None
        self._checks = True
        answered = False
        try:
            async with asyncio.timeout(CHECK_S):
                loop, answer = asyncio.get_running_loop(), b""
                await loop.sock_sendall(waiting.orders, msgspec.json.encode(Check(ask)) + b"\n")
                while not answer.endswith(b"\n") and (piece := await loop.sock_recv(waiting.orders, _PIECE_BYTES)):
                    answer += piece
            answered = answer.endswith(b"\n")
            return answer.strip() if answered else None
        except OSError as error:  # a TimeoutError is one
            if isinstance(error, TimeoutError):
                raise
            return None
        finally:
            self._checks = False
            if not answered:
                self.close()

    async def taken(self, words: list[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        """The program, which becomes the run with these words and this environment; None where none waits, or checks a file."""
        waiting = self._waiting
        if waiting is None or self._checks:
            return None
        self._waiting = None
        try:
            order = msgspec.json.encode(Begin(words, dict(variables))) + b"\n"
            await asyncio.get_running_loop().sock_sendall(waiting.orders, order)
            waiting.orders.close()
        except OSError:
            waiting.end()
            return None
        return waiting.process

    def close(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.end()


__all__ = ["CHECK_S", "Ready"]
