"""The program of a run: ``aiperf profile`` as a child, its address while it runs, and the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import BinaryIO, cast

from aiperf_pages.tokens import TOKEN

from aiperf_command_service.ready import Ready

_SERVED = re.compile(rb"the run is served on (http://\S+?)/(?:#\S*)?\s")
_BEGUN = re.compile(rb"INFO +Phase [^\n]* started")
_MOST_LOG_BYTES = 16 << 20
_LEFT_S = 5.0
"""How long what a run's program started may outlive it, silently."""
_LAUNCH = (
    "import ctypes, os, runpy, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"  # PR_SET_PDEATHSIG
    "if os.getppid() != int(sys.argv.pop(1)): sys.exit(143)\n"
    "sys.argv[0] = 'aiperf'\n"
    "runpy.run_module('aiperf', run_name='__main__', alter_sys=True)\n"
)
"""The program gets TERM once its parent is gone, so that a killed service leaves no load behind."""
_KEPT = frozenset((
    "PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "HF_HUB_OFFLINE", "HF_ENDPOINT", "TRANSFORMERS_OFFLINE",
))  # fmt: skip
"""Variables that a run's program needs and that are no secrets."""


def environment(allowed: Mapping[str, str]) -> dict[str, str]:
    """The environment of a posted run: what programs need, this program's own variables but for tokens, and *allowed*."""
    own = {
        name: value for name, value in os.environ.items()
        if name in _KEPT or name.startswith("LC_") or (name.startswith("AIPERF_") and "TOKEN" not in name and "KEY" not in name)
    }  # fmt: skip
    return {**own, **allowed}


def words(file: Path, results: Path) -> list[str]:
    """The words behind ``aiperf`` for a run of the service."""
    return [
        "profile", "--config", str(file), "--output-artifact-dir", str(results), "--ui", "none", "--api-host", "127.0.0.1",
        "--api-port", "0", "--stats-interval", "30",
    ]  # fmt: skip


class Child:
    """A run's program.  url: of its API, None until it is served; token: what that needs.  last_words: its error.

    killed: by the service.
    begun: its load has begun; served: its API has a URL.  Both are set once it has ended.  On a busy machine the API, whose
    process stands back behind the load, may come late.
    """

    def __init__(self, process: subprocess.Popen[bytes], token: str, log: Path) -> None:
        self._process, self.token = process, token
        self.pid = process.pid
        self.url: str | None = None
        self.begun, self.served = asyncio.Event(), asyncio.Event()
        self.last_words = ""
        self.killed = False
        self._loop = asyncio.get_running_loop()
        self._reading = asyncio.create_task(asyncio.to_thread(self._read, log))

    @classmethod
    async def begin(
        cls, launcher: Executor, file: Path, results: Path, log: Path, variables: Mapping[str, str], where: Path
    ) -> Child:
        """Start the program; *where* is its working directory.  *launcher*: its thread has the priority of runs.

        Raises:
            OSError: It can't be started.
        """
        token = secrets.token_urlsafe(24)

        def begun() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _LAUNCH, str(os.getpid()), *words(file, results)],
                cwd=where, start_new_session=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**variables, TOKEN: token},
            )  # fmt: skip

        return cls(await asyncio.get_running_loop().run_in_executor(launcher, begun), token, log)

    @classmethod
    async def of_ready(
        cls, ready: Ready, file: Path, results: Path, log: Path, variables: Mapping[str, str]
    ) -> Child | None:  # fmt: skip
        """The program that waits for a run, which is this one from now on; None where none waits."""
        token = secrets.token_urlsafe(24)
        process = await ready.taken(words(file, results), {**variables, TOKEN: token})
        return None if process is None else cls(process, token, log)

    def interrupt(self) -> None:
        """Do as Ctrl-C does: the first stops the run with its results, the second cancels it."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the program and what it started at once."""
        self.killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    async def ended(self) -> int:
        """The exit code; minus the number of the signal that killed it."""
        code = await self._reading
        self.begun.set()
        self.served.set()
        return code

    def _said(self, stream: BinaryIO) -> bool:
        """Wait for what the program says, or its end; False where others that it started still hold its output."""
        looking = select.poll()
        looking.register(stream, select.POLLIN)
        while not looking.poll(_LEFT_S * 1000):
            if self._process.poll() is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                return False
        return True

    def _read(self, log: Path) -> int:
        """Keep what the program says, up to a bound, and find its address in it; in a thread of its own."""
        stream, seen, written, begun = cast(BinaryIO, self._process.stdout), b"", 0, False
        with stream, contextlib.ExitStack() as opened:
            file: BinaryIO | None = None
            with contextlib.suppress(OSError):  # a full disk costs the log
                file = opened.enter_context(log.open("wb"))
            while self._said(stream) and (piece := os.read(stream.fileno(), 1 << 16)):
                with contextlib.suppress(OSError):  # as above
                    if file is not None and written < _MOST_LOG_BYTES:
                        file.write(piece)
                        file.flush()
                        written += len(piece)
                seen = (seen + piece)[-8192:]
                if not begun and _BEGUN.search(seen):
                    begun = True
                    self._loop.call_soon_threadsafe(self.begun.set)
                if self.url is None and (match := _SERVED.search(seen)):
                    self.url = match[1].decode()
                    self._loop.call_soon_threadsafe(self.served.set)
        lines = seen.decode(errors="replace").splitlines()
        self.last_words = next((line for line in reversed(lines) if line.startswith("error:")), "")
        return self._process.wait()


def born(pid: int) -> str:
    """When the process began, in ticks since the machine did; "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


__all__ = ["Child", "born", "environment", "words"]
