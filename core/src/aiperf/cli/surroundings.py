"""What a shell or a script leaves to the program: standard streams that may be closed, and signals that may be ignored."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from types import FrameType
from typing import Any, TextIO, cast

_READER_GONE = (errno.EPIPE, errno.EIO)
"""A pipe without a reader, and a terminal that was closed."""


class _Output(io.FileIO):
    """A standard stream.  What can't be written is dropped, and so is all that follows.  failure: the reason."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes


class Streams:
    """The standard streams of this process from now on.

    One that is closed reads or writes nothing; a name that the terminal's encoding lacks is written with escapes.
    """

    def __init__(self) -> None:
        for descriptor in (0, 1, 2):
            try:
                os.fstat(descriptor)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
        if sys.stdin is None:
            sys.stdin = open(0, closefd=False)  # noqa: SIM115
        self._out, self._err = _Output(1, "w", closefd=False), _Output(2, "w", closefd=False)
        sys.stdout = _text(self._out, sys.stdout, at_once=False)
        sys.stderr = _text(self._err, sys.stderr, at_once=True)

    def finished(self, code: int) -> int:
        """The exit code of a command that ended with *code*: 1 instead of 0 where a full disk has no room for its output."""
        for number in _HEEDED:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        failure = self._out.failure
        if failure is None or failure.errno in _READER_GONE:
            return code
        print(f"error: standard output can't be written: {failure.strerror}", file=sys.stderr)
        return code or 1


def _text(raw: _Output, before: TextIO | None, *, at_once: bool) -> TextIO:
    """*raw* as a stream of texts like *before*, None for one that was closed.  *at_once*: every line is written at once."""
    encoding = "utf-8" if before is None else before.encoding
    unbuffered = isinstance(before, io.TextIOWrapper) and before.write_through
    binary = cast(io.BufferedWriter, raw if unbuffered else io.BufferedWriter(raw))
    return io.TextIOWrapper(
        binary, encoding, "backslashreplace", line_buffering=at_once or raw.isatty(), write_through=unbuffered
    )


_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_signals() -> None:
    """Until a run counts signals by itself, each ends the program: nothing was started, and there are no results.

    SIGINT ends it even where it is ignored, as a shell ignores it for whatever a script starts with ``&``.  SIGHUP stays
    ignored where it is, as nohup leaves it.
    """
    for number in _HEEDED:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"aiperf: the load had not begun: there are no results\n")
    os._exit(128 + number)
