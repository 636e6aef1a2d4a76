"""The server that benchmarks are held against: built once, started per load, asked what it saw."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "truthd"


class Truth:
    """A running truthd."""

    def __init__(self, port: int) -> None:
        self.port = port

    def stats(self) -> dict[str, Any]:
        """Requests, rates and percentiles since the last reset."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def reset(self) -> None:
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/reset", data=b"", timeout=60).close()


def built() -> Path:
    """The program, compiled if its source is newer."""
    program, source = FOLDER / "truthd", FOLDER / "truthd.c"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise SystemExit("benchmarks need a C compiler: truthd, the server they are held against, is C")
        subprocess.run([compiler, "-O2", "-o", str(program), str(source), "-lm"], check=True)
    return program


@contextmanager
def truthd(ttft_ms: float, itl_ms: float) -> Iterator[Truth]:
    """A server with these times on a free port, for as long as the ``with`` lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [str(built()), str(port), f"ttft_ms={ttft_ms}", f"itl_ms={itl_ms}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"truthd did not start on port {port}") from None
                time.sleep(0.01)
        yield Truth(port)
    finally:
        process.kill()
        process.wait()
