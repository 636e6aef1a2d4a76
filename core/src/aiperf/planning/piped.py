"""Pipes and devices given as files: ``<(…)``, ``/dev/stdin``, a named pipe.

They can be read once, and a run looks several times.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import BinaryIO

from aiperf.environment import most_piped_bytes
from aiperf.errors import ConfigError
from aiperf.planning.problems import ReadingInterrupted
from aiperf.processes.local import ENDING
from aiperf.rundir import temporary

log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 18
_SAY_S = 2.0
"""After so long without a byte a person is told what is waited for."""
_LOOK_MS = 100
_DESCRIPTOR = re.compile(r"/dev/fd/(\d+)|/proc/self/fd/(\d+)")
_STANDARD_INPUT = "/dev/stdin"


def held(path: Path) -> Path:
    """A file with what the pipe *path* gives.

    The path stays that of a descriptor of this process, which is then one of the file, so that messages name it as typed.

    Raises:
        ConfigError: It gives nothing or too much, or can't be read or written.
        ReadingInterrupted: A signal came meanwhile, and its handler returned.
    """
    match = _DESCRIPTOR.fullmatch(str(path))
    number = int(match[1] or match[2]) if match else 0 if str(path) == _STANDARD_INPUT else None
    with _interruptible() as signals:
        return _copy_of(path, number, signals)


def _copy_of(path: Path, number: int | None, signals: list[int]) -> Path:
    """The same, for the descriptor *number* where it is one, until *signals* has one."""
    folder = Path(tempfile.mkdtemp(prefix="aiperf-pipe-"))
    copy = folder / path.name
    try:
        lock = temporary.lock(folder)
        with copy.open("wb") as file:
            size = _copied(path, number, file, signals)
        if not size:
            raise ConfigError(f"{path} is a pipe that gave nothing", "is it read by another program, too?")
        if sys.platform == "linux" and number is not None:
            with copy.open("rb") as file:
                os.dup2(file.fileno(), number)
            return path
        _remove_at_exit(folder, lock)
        log.info("%s is a pipe: it is read whole, %s bytes, before anything is sent", path, f"{size:,}")
        folder = Path()
        return copy
    except OSError as error:
        raise ConfigError(f"the pipe {path} can't be read: {error.strerror or error}") from error
    finally:
        if folder != Path():
            shutil.rmtree(folder, ignore_errors=True)


def _copied(path: Path, number: int | None, file: BinaryIO, signals: list[int]) -> int:
    """Copy all that comes, of the descriptor *number* where it is one, until *signals* has one; how many bytes."""
    most, size, said = most_piped_bytes(), 0, monotonic() + _SAY_S
    # Opened without waiting: a named pipe that nobody writes to would block, whatever signals come.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if number is None else os.dup(number)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        while True:
            ready = poll.poll(_LOOK_MS)
            if signals:
                raise ReadingInterrupted
            if not ready:
                if not size and said and monotonic() > said:
                    log.warning("%s is a pipe, and nobody writes to it yet", path)
                    said = 0.0
                continue
            try:
                piece = os.read(descriptor, _PIECE_BYTES)
            except BlockingIOError:
                continue
            if not piece:
                return size
            size += len(piece)
            if size > most:
                raise ConfigError(
                    f"the pipe {path} gave more than {most:,} bytes",
                    "write it to a file; AIPERF_DATASET_MAX_PIPE_BYTES allows more",
                )
            file.write(piece)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _interruptible() -> Iterator[list[int]]:
    """The signals that come meanwhile; an exception out of a handler may be lost in a log.

    Handlers that return are called at once; a signal that ends the process does so after the block.
    """
    before = {number: signal.getsignal(number) for number in ENDING}
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    noting = [
        number for number, handler in before.items()
        if handler is signal.SIG_DFL or (callable(handler) and handler is not signal.default_int_handler)
    ]  # fmt: skip
    try:
        for number in noting:
            signal.signal(number, note)
        yield noted
    finally:
        for number in noting:
            signal.signal(number, before[number])
        for ending in map(signal.Signals, noted):
            if before[ending] is signal.SIG_DFL:
                os.kill(os.getpid(), ending)


def _remove_at_exit(folder: Path, lock: BinaryIO) -> None:
    """Remove the folder when this process ends.  *lock*: closing it would end the lock."""
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child has the same callbacks
            shutil.rmtree(folder, ignore_errors=True)
            lock.close()

    atexit.register(remove)
