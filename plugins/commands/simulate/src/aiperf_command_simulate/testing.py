"""The simulator for tests: a server of one's own, in a process of its own, for as long as a ``with`` lasts."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Simulator:
    """A running server.  *url* is its base URL, *pid* its process."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.pid = process.pid
        self._process = process
        self._said: str | None = None

    def truth(self, *, last: int | None = None) -> dict[str, Any]:
        """``summary`` and, under ``requests``, the rows (*last*: at most so many that ended)."""
        truth: dict[str, Any] = self._ask("/truth" if last is None else f"/truth?last={last}")
        return truth

    def summary(self) -> dict[str, Any]:
        """The truth without rows."""
        summary: dict[str, Any] = self._ask("/truth?summary=1")["summary"]
        return summary

    def reset(self) -> None:
        """Forget what was counted."""
        self._ask("/truth/reset", method="POST")

    def stop(self) -> tuple[int, str]:
        """End it as Ctrl-C would; returns the exit code and standard error.  A second call returns the same."""
        if self._said is None:
            self._process.send_signal(signal.SIGINT)
            try:
                _, self._said = self._process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
                raise
        return self._process.returncode, self._said

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
    settings = json.dumps({"port": 0, **options}, default=str)
    process = subprocess.Popen(
        [sys.executable, "-m", "aiperf_command_simulate", settings],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    _, marker, url = line.strip().partition("listening on ")
    if not marker:
        _, errors = process.communicate()
        raise RuntimeError(f"the simulator didn't start: {errors.strip()}")
    simulator = Simulator(url, process)
    try:
        yield simulator
    finally:
        _, errors = simulator.stop()
    if "Traceback" in errors:
        raise RuntimeError(f"the simulator failed:\n{errors}")
