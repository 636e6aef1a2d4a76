"""A worker's journal segments: rows appended on the loop, written by a thread that does nothing else.

Packing costs about 0.1 µs a row; a frame is closed every 64 KiB or 50 ms so that neither the loop nor ``kill -9`` has much
to lose.  The thread exists because a disk may stall and the loop must not.
"""

from __future__ import annotations

import os
import threading
from array import array
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from aiperf import journal
from aiperf.engine.clock import read_clocks

_encode = msgspec.msgpack.Encoder().encode
_BACKLOG_BYTES = 256 << 20
_SENT, _DONE = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS)


class Logbook:
    """Append-only segments of shard *shard*.

    *position* is (segment, offset) of what is safely written; *reads* counts rows of chunks; *trouble* says why writing
    stopped, None while it works.
    """

    def __init__(self, directory: Path, shard: int, about: dict[str, Any]) -> None:
        self._directory = directory
        self._shard = shard
        self._about = about
        self._sent: list[int] = []
        self._chunks: list[int] = []
        self._bodies: list[bytes] = []
        self._done: list[int] = []
        self._texts: list[tuple[int, str, Any]] = []
        self._size = 0
        self.reads = 0
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued = self._written = 0
        self.position = (0, 0)
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
        self._texts.append((request, kind, value))

    def frame(self, kind: int, value: Any) -> None:
        """A frame of its own (PHASE, LOOP), behind everything so far."""
        self.flush()
        self._put(journal.pack(kind, _encode(value), *read_clocks()))

    def flush(self) -> None:
        """Close what is open into frames and hand them to the thread."""
        if not (self._sent or self._chunks or self._done or self._texts):
            return
        clocks = read_clocks()
        pack, out = journal.pack, []
        if self._sent:
            out.append(pack(journal.SENT, array("q", self._sent).tobytes(), *clocks, len(self._sent) // _SENT))
            self._sent.clear()
        if self._chunks:
            rows = array("q", self._chunks).tobytes()
            out.append(pack(journal.CHUNKS, b"".join((rows, *self._bodies)), *clocks, len(self._bodies)))
            self.reads += len(self._bodies)
            self._chunks.clear()
            self._bodies.clear()
        if self._texts:
            out.append(pack(journal.TEXT, _encode(self._texts), *clocks, len(self._texts)))
            self._texts.clear()
        if self._done:
            out.append(pack(journal.DONE, array("q", self._done).tobytes(), *clocks, len(self._done) // _DONE))
            self._done.clear()
        self._size = 0
        self._put(b"".join(out))

    def _put(self, data: bytes) -> None:
        self._queued += len(data)
        if self._queued - self._written > _BACKLOG_BYTES and self.trouble is None:
            self.trouble = "the disk is too slow for the journal"
        self._queue.put(data)

    def close(self) -> None:
        """Write everything out and wait for it."""
        self.flush()
        self._queue.put(None)
        self._thread.join()

    def _unused(self) -> int:
        """The number of the first segment: behind those of a worker that died, in whose place this one is."""
        there = journal.numbered(self._directory, f"shard-{self._shard}.*.seg")
        return int(there[-1].name.split(".")[1]) + 1 if there else 0

    def _open(self, k: int) -> int:
        path = journal.segment_path(self._directory, self._shard, k)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(path, flags, 0o600)

    def _write(self) -> None:
        """The thread.  An error stops writing for good: what is on disk stays whole up to its last frame."""
        k, offset, fd = self._unused(), 0, -1
        try:
            while (data := self._queue.get()) is not None:
                if self.trouble is not None:
                    self._written += len(data)
                    continue
                try:
                    if fd < 0:
                        fd = self._open(k)
                        head = journal.pack(journal.PLAN, _encode(self._about), *read_clocks())
                        journal.write_all(fd, head)
                        offset = len(head)
                    journal.write_all(fd, data)
                except OSError as error:
                    self.trouble = f"the journal can't be written: {error.strerror or error}"
                    continue
                finally:
                    self._written += len(data)
                offset += len(data)
                self.position = (k, offset)
                if offset >= journal.SEGMENT_BYTES:
                    os.fdatasync(fd)
                    os.close(fd)
                    k, fd = k + 1, -1
        finally:
            if fd >= 0:
                os.close(fd)
