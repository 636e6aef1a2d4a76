"""A second process for what is left behind the load: it reads segments, and the reducer stores and scores its batches.

Behind the load the cores of workers are free, and a person waits.  Of a plain request, reading takes 8 us, the rest 4, and its
rows for the exporters 12.  These come behind the summary: the second process begins with them while the reducer summarises, and
from then on the two take every other batch.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
from collections.abc import Callable
from typing import NoReturn

import msgspec
from aiperf.parts.processes import fate
from msgspec import Struct

from aiperf_reducer_columns.reduce.batches import StoredBatch

log = logging.getLogger("aiperf.reducer")
_LENGTH = 8
"""Bytes of the length in front of a message."""
_PIPE_BYTES = 1 << 20
"""What a user may ask of the system; a batch has about as much."""
_FINISHING, _ENDLESS, _SHARE = b"f", b"e", b"s"
"""Words of the reducer: write rows, of a run whose answers have a reason for their end or none; share the rest, or go on."""


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


class Written(Struct, tag=True):
    """All rows that were put off are written.

    failures, off: sentences by the name of a plugin, and by the tag of a metric.  warned: what plugins warned of there.
    """

    failures: dict[str, str]
    off: dict[str, str]
    warned: list[str]


class _Made(Struct, tag=True):
    batch: StoredBatch


class _Shared(Struct, tag=True):
    """From the batch of this number on, the two processes take every other one; the second process begins."""

    first: int


class _Turn(Struct, tag=True):
    """The rows of a batch are written, and those of the next one may be."""


class ReaderDiedError(Exception):
    """The second process ended early; whoever starts this one again gets all of it from the journal."""


class Turns:
    """Which batches a process makes rows of, and when it may write them: here of one that is alone.  Batches have numbers."""

    def takes(self, number: int) -> bool:
        return True

    def wait(self, number: int) -> None:
        """Until the rows of the batch before are written."""

    def end(self, number: int) -> None:
        """The rows of the batch are written."""


class Aside:
    """The second process.

    *read*: reads to the end in it, and gives each batch to the function that it is called with.  *write*: writes the rows that
    were put off, told whether answers have a reason for their end.

    warned: what plugins warned of there.
    """

    def __init__(
        self, read: Callable[[Callable[[StoredBatch], None]], Left], write: Callable[[bool, Turns], Written]
    ) -> None:
        receives, sends = os.pipe()
        hears, self._says = os.pipe()
        fcntl.fcntl(sends, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._pid = os.fork()
        if self._pid == 0:
            os.close(receives)
            os.close(self._says)
            _work(read, write, sends, hears)
        os.close(sends)
        os.close(hears)
        self._pipe = os.fdopen(receives, "rb", _PIPE_BYTES)
        self._decoder = msgspec.msgpack.Decoder(_Made | Left | _Shared | _Turn | Written)
        self.left: Left | None = None
        self.warned: list[str] = []

    def take(self) -> StoredBatch | None:
        """The next batch; None where :attr:`left` is known, because there is none.

        Raises:
            ReaderDiedError: The process ended before that.
        """
        if self.left is not None:
            return None
        said = self.receive()
        if isinstance(said, _Made):
            return said.batch
        assert isinstance(said, Left)
        self.left, self.warned = said, said.warned
        return None

    def begin_rows(self, *, finishing: bool) -> None:
        """Let it write rows: all batches are in the columns."""
        self.say(_FINISHING if finishing else _ENDLESS)

    def share(self, write: Callable[[Turns], None]) -> Written:
        """Write the rest of the rows together with it, by *write* here.

        Raises:
            ReaderDiedError: The process ended before that.
        """
        self.say(_SHARE)
        said = self.receive()
        try:
            if isinstance(said, _Shared):
                write(_EveryOther(self, said.first))
        except OSError:
            self.close()
            raise
        while not isinstance(said, Written):
            said = self.receive()
        self.close()
        self.warned = [*self.warned, *said.warned]
        return said

    def say(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has nothing left to do, or has died, which the next answer tells
            os.write(self._says, word)

    def receive(self) -> _Made | Left | _Shared | _Turn | Written:
        """What it says next.

        Raises:
            ReaderDiedError: The process has ended.
        """
        size = int.from_bytes(self._pipe.read(_LENGTH), "little")
        data = self._pipe.read(size)
        if not size or len(data) < size:
            raise ReaderDiedError(f"the process that reads the journal {fate(self.close())}")
        said: _Made | Left | _Shared | _Turn | Written = self._decoder.decode(data)
        return said

    def close(self) -> int:
        """End it; its exit code."""
        self._pipe.close()
        os.close(self._says)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


class _EveryOther(Turns):
    """The reducer's: of every other batch behind *first*."""

    def __init__(self, aside: Aside, first: int) -> None:
        self._aside, self._first = aside, first

    def takes(self, number: int) -> bool:
        return number > self._first and (number - self._first) % 2 == 1

    def wait(self, number: int) -> None:
        self._aside.receive()

    def end(self, number: int) -> None:
        self._aside.say(_SHARE)


class _UntilShared(Turns):
    """The second process's: of all batches, and of every other one from the one on at which the reducer asks for its share."""

    def __init__(self, hears: int, send: Callable[[_Shared | _Turn], None]) -> None:
        self._hears, self._send = hears, send
        self._first: int | None = None

    def takes(self, number: int) -> bool:
        if self._first is None and select.select([self._hears], [], [], 0)[0]:
            _hear(self._hears)
            self._first = number
            self._send(_Shared(number))
        return self._first is None or (number - self._first) % 2 == 0

    def wait(self, number: int) -> None:
        if self._first is not None and number > self._first:
            _hear(self._hears)

    def end(self, number: int) -> None:
        if self._first is not None:
            self._send(_Turn())


def _hear(pipe: int) -> bytes:
    word = os.read(pipe, 1)
    if not word:
        raise BrokenPipeError
    return word


def _work(
    read: Callable[[Callable[[StoredBatch], None]], Left], write: Callable[[bool, Turns], Written], pipe: int, hears: int
) -> NoReturn:
    """The child.  It leaves without unwinding the parent's stack."""
    try:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads don't outlive a fork, and the package would say so
        encoder = msgspec.msgpack.Encoder()

        def send(said: _Made | Left | _Shared | _Turn | Written) -> None:
            data = encoder.encode(said)
            file.write(len(data).to_bytes(_LENGTH, "little"))
            file.write(data)
            file.flush()

        with os.fdopen(pipe, "wb") as file:
            send(read(lambda batch: send(_Made(batch))))
            send(write(_hear(hears) == _FINISHING, _UntilShared(hears, send)))
    except BrokenPipeError:  # the parent is gone, or needs no rows
        os._exit(0)
    except OSError as error:  # the reducer does this part again, and tells it
        log.warning("the second process of the reducer failed: %s", error)
        os._exit(1)
    except BaseException:
        log.exception("the rest of the journal could not be read:")
        os._exit(1)
    os._exit(0)
