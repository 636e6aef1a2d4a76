"""A worker's journal segments: rows appended on the loop, written by a thread that does nothing else.

Packing costs about 0.1 µs a row.  A frame is closed every 64 KiB or 50 ms, so that ``kill -9`` loses little.  The thread exists
because a disk may stall and the loop must not.
"""

from __future__ import annotations

import os
import threading
from array import array
from pathlib import Path
from queue import SimpleQueue
from time import monotonic_ns
from typing import Any

import msgspec

from aiperf.rundir import journal
from aiperf.worker.clock import read_clocks

_encode = msgspec.msgpack.Encoder().encode
_BACKLOG_BYTES = 256 << 20
_SEGMENT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_SENT, _DONE = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS)


class Logbook:
    """Append-only segments of shard *shard*.

    reads: rows of chunks.  write_ns: time that writing took.  trouble: why writing stopped, None while it works.
    """

    def __init__(self, directory: Path, shard: int, about: dict[str, Any]) -> None:
        self._directory, self._shard, self._about = directory, shard, about
        self._sent: list[int] = []
        self._chunks: list[int] = []
        self._bodies: list[bytes] = []
        self._done: list[int] = []
        self._texts: list[tuple[int, str, Any]] = []
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = self._queued = self._written = self.reads = self.write_ns = 0
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    def sent(self, row: tuple[int, ...]) -> None:
        """A request was started: SENT_FIELDS."""
        self._sent += row
        self._size += 8 * _SENT

    def chunk(self, request: int, kernel_ns: int, read_ns: int, body: bytes, hidden: int) -> None:
        size = len(body)
        self._chunks += (request, kernel_ns, read_ns, size, hidden)
        self._bodies.append(body)
        self._size += size + 40
        if self._size >= journal.FLUSH_BYTES:
            self.flush()

    def done(self, row: tuple[int, ...]) -> None:
        """A request is over: DONE_FIELDS."""
        self._done += row
        self._size += 8 * _DONE
        if self._size >= journal.FLUSH_BYTES:
            self.flush()

    def text(self, request: int, kind: str, value: Any) -> None:
        """A row of a TEXT frame."""
        self._texts.append((request, kind, value))

    def frame(self, kind: int, value: Any) -> None:
        """Append a frame of its own (PHASE, LOOP) behind all rows so far."""
        self.flush((kind, value))

    def flush(self, frame: tuple[int, Any] | None = None) -> None:
        """Pack the rows so far, then *frame*, and hand the bytes to the thread."""
        if not (self._sent or self._chunks or self._done or self._texts or frame):
            return
        frames = (
            (journal.SENT, array("q", self._sent).tobytes(), len(self._sent) // _SENT),
            (journal.CHUNKS, b"".join((array("q", self._chunks).tobytes(), *self._bodies)), len(self._bodies)),
            (journal.TEXT, _encode(self._texts) if self._texts else b"", len(self._texts)),
            (journal.DONE, array("q", self._done).tobytes(), len(self._done) // _DONE),
        )
        clocks = read_clocks()
        out = [journal.pack(kind, payload, *clocks, count) for kind, payload, count in frames if payload]
        if frame is not None:
            out.append(journal.pack(frame[0], _encode(frame[1]), *clocks))
        self.reads += len(self._bodies)
        rows: tuple[list[Any], ...] = (self._sent, self._chunks, self._bodies, self._texts, self._done)
        for part in rows:
            part.clear()
        self._size = 0
        data = b"".join(out)
        self._queued += len(data)
        if self._queued - self._written > _BACKLOG_BYTES and self.trouble is None:
            self.trouble = "the disk is too slow for the journal"
        self._queue.put(data)

    def close(self) -> None:
        """Write all frames and end the thread."""
        self.flush()
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        """The thread.  An error stops writing for good: the file is whole up to its last frame."""
        # Behind the segments of a worker that died and that this one replaces.
        segments = journal.numbered(self._directory, f"shard-{self._shard}.*.seg")
        k, offset, fd = int(segments[-1].name.split(".")[1]) + 1 if segments else 0, 0, -1
        try:
            while (data := self._queue.get()) is not None:
                size, began_ns = len(data), monotonic_ns()
                try:
                    if self.trouble is not None:
                        continue
                    if fd < 0:
                        fd = os.open(journal.segment_path(self._directory, self._shard, k), _SEGMENT_FLAGS, 0o600)
                        data = journal.pack(journal.PLAN, _encode(self._about), *read_clocks()) + data
                        offset = 0
                    rest = memoryview(data)
                    while rest:
                        rest = rest[os.write(fd, rest) :]
                except OSError as error:
                    self.trouble = f"the journal can't be written: {error.strerror or error}"
                    continue
                finally:
                    self._written += size
                    self.write_ns += monotonic_ns() - began_ns
                offset += len(data)
                if offset >= journal.SEGMENT_BYTES:
                    os.fdatasync(fd)
                    os.close(fd)
                    k, fd = k + 1, -1
        finally:
            if fd >= 0:
                os.close(fd)
