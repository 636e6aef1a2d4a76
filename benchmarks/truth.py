"""The server that benchmarks are held against: built once, started per load, asked what it saw."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).resolve().parent / "truthd"


class Seen(NamedTuple):
    """When requests were read, their first and their last chunks handed to the socket, when the kernel had the request, which a
    frozen server reads later, and when the first chunk of a stream was written; wall clock, ns.  ids: as answers have them."""

    received: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]
    written: npt.NDArray[np.int64]
    ids: tuple[str, ...]


class Truth:
    """A running truthd.  *certificate*: it speaks https with this one.  pid: of its process."""

    def __init__(self, port: int, pid: int, certificate: Path | None = None) -> None:
        self.port, self.pid = port, pid
        self._base = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
        self._tls = ssl.create_default_context(cafile=certificate) if certificate else None

    def stats(self) -> dict[str, Any]:
        """Requests, rates and percentiles since the last reset."""
        with urllib.request.urlopen(f"{self._base}/stats", timeout=60, context=self._tls) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def requests(self) -> Seen:
        """Every request that was answered since the last reset, in the order they came."""
        with urllib.request.urlopen(f"{self._base}/dump", timeout=60, context=self._tls) as answer:
            text: str = answer.read().decode()
        cells = [line.split(",") for line in text.splitlines()]
        rows = np.array([row[1:] for row in cells], dtype=np.int64).reshape(-1, 6)
        answered = rows[:, 2] > 0
        received, first, last, _, arrived, written = rows[answered].T
        ids = tuple(row[0] for row, known in zip(cells, answered.tolist(), strict=True) if known)
        return Seen(received, first, last, arrived, written, ids)

    def reset(self) -> None:
        urllib.request.urlopen(f"{self._base}/reset", data=b"", timeout=60, context=self._tls).close()


def built(name: str = "truthd", *, tls: bool = False) -> Path:
    """The program, compiled if its source is newer.  *tls*: with OpenSSL, whose headers must be there."""
    program, source = FOLDER / f"{name}{'-tls' if tls else ''}", FOLDER / f"{name}.c"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise SystemExit("benchmarks need a C compiler: truthd, the server they are held against, is C")
        more = ["-DTLS", "-lssl", "-lcrypto"] if tls else []
        subprocess.run([compiler, "-O2", "-o", str(program), str(source), "-lm", *more], check=True)
    return program


def certificate(folder: Path) -> dict[str, str]:
    """A new certificate for 127.0.0.1 and its key: the variables by which truthd finds them."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = {"TRUTHD_CERT": str(folder / "cert.pem"), "TRUTHD_KEY": str(folder / "key.pem")}
    about = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*words, *about, "-out", names["TRUTHD_CERT"], "-keyout", names["TRUTHD_KEY"]], check=True, capture_output=True
    )
    return names


@contextmanager
def truthd(ttft_ms: float, itl_ms: float, *, tls: Mapping[str, str] | None = None, **more: float) -> Iterator[Truth]:
    """A server with these times on a free port, for as long as the ``with`` lasts.  *more*: further settings of its own.

    *tls*: as :func:`certificate` gives it.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"ttft_ms": ttft_ms, "itl_ms": itl_ms, **more}
    process = subprocess.Popen(
        [str(built(tls=tls is not None)), str(port), *(f"{name}={value}" for name, value in settings.items())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(tls or {})},
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
        yield Truth(port, process.pid, Path(tls["TRUTHD_CERT"]) if tls else None)
    finally:
        process.kill()
        process.wait()
