"""A second process for what is left behind the load: it reads segments, and the reducer stores, scores and exports its batches.

Behind the load the cores of workers are free, and a person waits.  Of a plain request, reading takes 8 us and the rest 12.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable
from typing import NoReturn

import msgspec
from msgspec import Struct

from aiperf.processes.local import fate
from aiperf.reduce.batches import StoredBatch

log = logging.getLogger(__name__)
_LENGTH = 8
_PIPE_BYTES = 1 << 20
"""What a user may ask of the system; a batch has about as much."""


class Left(Struct, tag=True):
    """What the reader of segments knows at their end.

    notes, failures: sentences, by name.  missing: requests that are in no file.  lost: a sentence on each damage.
    damaged: whether requests are missing or damaged.  warned: what plugins warned of in this process.
    """

    notes: dict[str, str]
    failures: dict[str, str]
    missing: int
    lost: list[str]
    damaged: bool
    warned: list[str] = []


class _Made(Struct, tag=True):
    batch: StoredBatch


class ReaderDiedError(Exception):
    """The second process ended early; whoever starts this one again gets all of it from the journal."""


class Aside:
    """The second process.  *read*: reads to the end in it, and gives each batch to the function that it is called with."""

    def __init__(self, read: Callable[[Callable[[StoredBatch], None]], Left]) -> None:
        receives, sends = os.pipe()
        fcntl.fcntl(sends, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._pid = os.fork()
        if self._pid == 0:
            os.close(receives)
            _read(read, sends)
        os.close(sends)
        self._pipe = os.fdopen(receives, "rb", _PIPE_BYTES)
        self._decoder = msgspec.msgpack.Decoder(_Made | Left)
        self.left: Left | None = None

    def take(self) -> StoredBatch | None:
        """The next batch; None where :attr:`left` is known, because there is none.

        Raises:
            ReaderDiedError: The process ended before that.
        """
        if self.left is not None:
            return None
        size = int.from_bytes(self._pipe.read(_LENGTH), "little")
        data = self._pipe.read(size)
        if not size or len(data) < size:
            raise ReaderDiedError(f"the process that reads the journal {fate(self._end())}")
        said = self._decoder.decode(data)
        if isinstance(said, _Made):
            return said.batch
        self.left = said
        self._end()
        return None

    def _end(self) -> int:
        self._pipe.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _read(read: Callable[[Callable[[StoredBatch], None]], Left], pipe: int) -> NoReturn:
    """The child.  It leaves without unwinding the parent's stack."""
    try:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads don't outlive a fork, and the package would say so
        encoder = msgspec.msgpack.Encoder()

        def send(said: _Made | Left) -> None:
            data = encoder.encode(said)
            file.write(len(data).to_bytes(_LENGTH, "little"))
            file.write(data)
            file.flush()

        with os.fdopen(pipe, "wb") as file:
            send(read(lambda batch: send(_Made(batch))))
    except BrokenPipeError:  # the parent is gone
        os._exit(0)
    except BaseException:
        log.exception("the rest of the journal could not be read:")
        os._exit(1)
    os._exit(0)
