"""The optional judge of expressions, math-verify, in a process of its own with limits.

It runs only where our own core can't read an expression.  An expression on which it takes more than LIMIT_S of processor time,
or LIMIT_BYTES of memory, ends its process; the two texts then count as different, and the next two get another process.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import weakref
from importlib.metadata import PackageNotFoundError, version

_LONGEST = 1_000
"""Characters of the longest text that it is asked about."""
_HANGS_S = 120.0
"""Longest wait for a reply, in s; the process is killed then."""
_MOST_LOST = 20
"""After as many lost processes in a row nobody is asked any more."""


def installed() -> str | None:
    """The engine with its version, ``math-verify 0.9.0``; None where it is not installed."""
    try:
        return f"math-verify {version('math-verify')}"
    except PackageNotFoundError:
        return None


class MathVerify:
    """Asks math-verify whether two texts are equal; its process starts with the first question."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lost = 0

    def __call__(self, expected: str, answer: str) -> bool:
        if max(len(expected), len(answer)) > _LONGEST or self._lost >= _MOST_LOST:
            return False
        reply = self._ask(json.dumps([expected, answer]).encode() + b"\n")
        if reply is None:
            self._lost += 1
            self.close()
            return False
        self._lost = 0
        return reply == b"1\n"

    def _ask(self, question: bytes) -> bytes | None:
        """The reply; None where the process ended or hangs."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "aiperf_grading.engine_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            weakref.finalize(self, _end, self._process)
        sent, answers = self._process.stdin, self._process.stdout
        assert sent is not None and answers is not None
        try:
            sent.write(question)
            sent.flush()
        except OSError:
            return None
        ready, _, _ = select.select([answers], [], [], _HANGS_S)
        return (answers.readline() or None) if ready else None

    def close(self) -> None:
        """End the process; the next question starts another one."""
        if self._process is not None:
            _end(self._process)
            self._process = None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # a question that nobody has read
                pipe.close()
    process.wait()


__all__ = ["MathVerify", "installed"]
