"""A program's run on one test case, seen from outside its process."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

CASE_S = 7.0
"""The longest time for a test case."""
_START_S = 60.0
"""The longest start of the process, before it runs the program."""
_MOST_BYTES = 1 << 20
_JAIL = Path(__file__).with_name("jail.py")


class Outcome(Struct, frozen=True):
    """What came of a run.  fault: a sentence where the program has not ended in order; None where it has.  took_s: its time."""

    output: str
    fault: str | None
    took_s: float


class JailError(RuntimeError):
    """The process could not be prepared; the program has not run."""


def run(code: str, function: str | None, given: str, *, isolated: bool, limit_s: float) -> Outcome:
    """Run *code* in a process of its own, which has ended when this returns.

    given: its standard input, or with *function* a JSON list of the function's arguments.

    Raises:
        JailError: The process could not be prepared.
    """
    folder = Path(tempfile.mkdtemp(prefix="aiperf-code-"))
    try:
        work = folder / "work"
        work.mkdir()
        (folder / "job.json").write_text(json.dumps({"code": code, "function": function, "given": given if function else ""}))
        (folder / "input").write_text("" if function else given)
        return _run(folder, work, isolated, limit_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, work: Path, isolated: bool, limit_s: float) -> Outcome:
    ready, tell = os.pipe()
    how = "isolated" if isolated else "unisolated"
    words = [sys.executable, "-I", str(_JAIL), how, str(work), str(folder / "job.json"), str(tell), str(os.getpid())]
    try:
        with (folder / "input").open("rb") as given:
            process = subprocess.Popen(
                words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd=work, pass_fds=(tell,),
                start_new_session=True,
            )  # fmt: skip
    finally:
        os.close(tell)
    assert process.stdout is not None
    try:
        prepared = _read(ready, _START_S, 10_000)[0]
        if prepared != b"ready":
            raise JailError(prepared.decode("utf-8", "replace") or "the process ended before the program began")
        begun = time.monotonic()
        output, ended = _read(process.stdout.fileno(), limit_s, _MOST_BYTES)
        if ended:  # a program may close its output and go on
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit_s - (time.monotonic() - begun)))
        took_s = time.monotonic() - begun
        return Outcome(output.decode("utf-8", "replace"), _fault(process, len(output), limit_s), took_s)
    finally:
        os.close(ready)
        process.kill()
        process.wait()
        process.stdout.close()


def _fault(process: subprocess.Popen[bytes], size: int, limit_s: float) -> str | None:
    if size > _MOST_BYTES:
        return "more than 1 MB of output"
    code = process.poll()
    if code is None:
        return f"it took longer than {limit_s:g} s"
    if code == 0:
        return None
    return f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}"


def _read(descriptor: int, limit_s: float, most: int) -> tuple[bytes, bool]:
    """What arrives until the end, for *limit_s* or until it is more than *most* bytes; and whether the end was reached."""
    until, pieces = time.monotonic() + limit_s, bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(pieces) <= most and (left := until - time.monotonic()) > 0:
            if selector.select(left):
                piece = os.read(descriptor, 65_536)
                if not piece:
                    return bytes(pieces), True
                pieces += piece
    return bytes(pieces), False


def missing() -> str | None:
    """Why a process can't be isolated here; None where it can."""
    try:
        outcome = run("print(1)", None, "", isolated=True, limit_s=_START_S)
    except (JailError, OSError) as error:
        return str(error)
    return outcome.fault


__all__ = ["CASE_S", "JailError", "Outcome", "missing", "run"]
