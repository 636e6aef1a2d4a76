"""The simulator for tests: a server of one's own, in a process of its own, for as long as a ``with`` lasts."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_PATIENCE_S = 60.0


class Fork:
    """A process that a nursery forked.  *end*: the pipe that tells its exit code."""

    def __init__(self, pid: int, end: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._end = end

    def poll(self, seconds: float = 0.0) -> int | None:
        """The exit code, waited for so long; None while it runs."""
        if self.returncode is None and select.select([self._end], [], [], seconds)[0]:
            said = os.read(self._end, 16)
            os.close(self._end)
            self.returncode = int(said) if said else -signal.SIGKILL  # the nursery is gone, and it with it
        return self.returncode

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Nursery:
    """A process that has imported what others need, and forks one when it is asked; started at the first.

    *words*: of its command line, behind the interpreter *python*; the descriptor of its socket follows them.
    """

    def __init__(self, *words: str, python: str | None = None) -> None:
        self._words, self._python = words, python
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asks: socket.socket
        atexit.register(self.close)

    def _open(self) -> None:
        self.close()
        self._asks, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [self._python or sys.executable, *self._words, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def close(self) -> None:
        """End it, with all of its forks."""
        if self._process is not None:
            self._asks.close()
            self._process.wait()
            self._process = None

    def fork(
        self, given: dict[str, Any], out: int, err: int, *,
        folder: Path | None = None, environment: dict[str, str] | None = None,
    ) -> Fork:
        """A process that is *given* this, with its standard output and error; None are this process's folder and variables."""
        wish = {
            "given": given, "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ) if environment is None else environment,
        }  # fmt: skip
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._open()
            end, ended = os.pipe()
            message = json.dumps(wish, default=str).encode() + b"\n"
            sent = socket.send_fds(self._asks, [message], [out, err, ended])
            self._asks.sendall(message[sent:])
            os.close(ended)
            answer = self._asks.makefile("rb", buffering=0).readline()
        if not answer:
            raise RuntimeError("the nursery has died")
        return Fork(int(answer), end)


_SIMULATORS = Nursery("-m", "aiperf_command_simulate.nursery")


class Simulator:
    """A running server.  *url* is its base URL, *pid* its process; *errors* gets its standard error."""

    def __init__(self, url: str, process: Fork, errors: IO[bytes]) -> None:
        self.url = url
        self.pid = process.pid
        self._process, self._errors = process, errors
        self._said: str | None = None

    def truth(self, *, last: int | None = None) -> dict[str, Any]:
        """``summary`` and, under ``requests``, the rows (*last*: at most so many that ended)."""
        truth: dict[str, Any] = self._ask("/truth" if last is None else f"/truth?last={last}")
        return truth

    def summary(self) -> dict[str, Any]:
        """The truth without rows."""
        summary: dict[str, Any] = self._ask("/truth?summary=1")["summary"]
        return summary

    def joules(self, *instants_ns: int) -> dict[str, list[float]]:
        """The exact energies of its GPUs from its start until these instants of CLOCK_MONOTONIC, by UUID."""
        found = self._ask(f"/truth?summary=1&energy_until={','.join(map(str, instants_ns))}")["summary"]["engine"]["gpus"]
        return {gpu["uuid"]: gpu["joules"] for gpu in found}

    def reset(self) -> None:
        """Forget what was counted."""
        self._ask("/truth/reset", method="POST")

    def stop(self) -> tuple[int, str]:
        """End it as Ctrl-C would; returns the exit code and standard error.  A second call returns the same."""
        if self._said is None:
            self._process.kill(signal.SIGINT)
            if self._process.poll(_PATIENCE_S) is None:
                self._process.kill()
                raise TimeoutError(f"the simulator did not end in {_PATIENCE_S:g} s")
            self._said = _text(self._errors)
        code = self._process.poll()
        assert code is not None
        return code, self._said

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def _ask(self, path: str, method: str = "GET") -> Any:
        context = ssl.create_default_context() if self.url.startswith("https") else None
        if context is not None:  # the certificate is the test's own
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        request = urllib.request.Request(self.url + path, method=method)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), *([urllib.request.HTTPSHandler(context=context)] if context else [])
        )
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def running(**options: Any) -> Iterator[Simulator]:
    """A simulator with these options (fields of ``SimulateOptions``) on a free port.

    Raises:
        RuntimeError: It didn't start, or had a fault of its own; the message is its standard error.
    """
    with tempfile.TemporaryFile() as errors:
        yield from _running({"port": 0, **options}, errors)


def _running(options: dict[str, Any], errors: IO[bytes]) -> Iterator[Simulator]:
    said, out = os.pipe()
    process = _SIMULATORS.fork(options, out, errors.fileno())
    os.close(out)
    with os.fdopen(said) as file:
        _, marker, url = file.readline().strip().partition("listening on ")
    if not marker:
        process.poll(_PATIENCE_S)
        raise RuntimeError(f"the simulator didn't start: {_text(errors).strip()}")
    simulator = Simulator(url, process, errors)
    try:
        yield simulator
    finally:
        _, text = simulator.stop()
    if "Traceback" in text:
        raise RuntimeError(f"the simulator failed:\n{text}")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
