"""A worker's journal segments: rows appended on the loop, written by a thread that does nothing else.

Packing costs about 0.1 µs a row.  A frame is closed every 64 KiB or 50 ms, so that ``kill -9`` loses little.  The thread exists
because a disk may stall and the loop must not.
"""

from __future__ import annotations

import itertools
import os
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from time import monotonic_ns
from typing import Any

import msgspec

from aiperf.rundir import journal
from aiperf.worker.clock import read_clocks

_encode = msgspec.msgpack.Encoder().encode
_BACKLOG_BYTES, _PIECE_BYTES = 256 << 20, 1 << 20
_SEGMENT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_SENT, _DONE = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS)


class Logbook:
    """Append-only segments of shard *shard*.

    reads: rows of chunks.  write_ns: time that writing took.  trouble: why writing stopped, None while it works.
    *keeps*: what can't be written stays in memory, as long as it is at most 256 MB.
    """

    # More than 20 attributes: a list for each kind of row, which the loop fills, and the file of the thread that writes them.

    def __init__(self, directory: Path, shard: int, about: dict[str, Any], *, keeps: bool = False) -> None:
        self._keeps, self._unwritten = keeps, list[bytes]()
        self._directory, self._shard, self._about = directory, shard, about
        self._sent: list[int] = []
        self._chunks: list[int] = []
        self._bodies: list[bytes] = []
        self._done: list[int] = []
        self._texts: list[tuple[int, str, Any]] = []
        self._told: list[bytes] = []
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = self._queued = self._written = self._frames = self.reads = self.write_ns = 0
        self.trouble: str | None = None
        # Behind the segments of a worker that died and that this one replaces.
        segments = journal.numbered(directory, f"shard-{shard}.*.seg")
        self._segment = int(segments[-1].name.split(".")[1]) + 1 if segments else 0
        self._fd, self._path, self._offset, self._heading = -1, directory, 0, b""
        self._open()  # before connections take the last open file
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

    def tell(self, value: dict[str, Any]) -> None:
        """Append a NODES frame, before the rows since the last frames."""
        told = _encode(value)
        self._told.append(told)
        self._size += len(told)

    def frame(self, kind: int, value: Any) -> None:
        """Append a frame of its own (PHASE, LOOP) behind all rows so far."""
        self.flush((kind, value))

    def flush(self, frame: tuple[int, Any] | None = None) -> None:
        """Pack the rows so far, then *frame*, and hand the bytes to the thread."""
        if not (self._sent or self._chunks or self._done or self._texts or self._told or frame):
            return
        frames = (
            *((journal.NODES, told, 0) for told in self._told),
            (journal.SENT, array("q", self._sent).tobytes(), len(self._sent) // _SENT),
            (journal.CHUNKS, b"".join((array("q", self._chunks).tobytes(), *self._bodies)), len(self._bodies)),
            (journal.TEXT, _encode(self._texts) if self._texts else b"", len(self._texts)),
            (journal.DONE, array("q", self._done).tobytes(), len(self._done) // _DONE),
        )
        clocks = read_clocks()
        rows = [each for each in frames if each[1]]
        if frame is not None:
            rows.append((frame[0], _encode(frame[1]), 0))
        numbers = itertools.count(self._frames)
        out = [journal.pack(kind, payload, *clocks, count, next(numbers)) for kind, payload, count in rows]
        self._frames += len(rows)
        self.reads += len(self._bodies)
        parts: tuple[list[Any], ...] = (self._sent, self._chunks, self._bodies, self._texts, self._done, self._told)
        for part in parts:
            part.clear()
        self._size = 0
        data = b"".join(out)
        self._queued += len(data)
        if self._queued - self._written > _BACKLOG_BYTES and self.trouble is None:
            self.trouble = "the disk is too slow for the journal"
        self._queue.put(data)

    @property
    def packed_bytes(self) -> int:
        """Bytes of all frames so far."""
        return self._queued

    def close(self) -> None:
        """Write all frames and end the thread."""
        self.flush()
        self._queue.put(None)
        self._thread.join()

    def unwritten(self) -> Iterator[tuple[str, bytes]]:
        """What was kept, once this is closed: the name of the segment, and pieces of what belongs behind its end."""
        rest = b"".join(self._unwritten)
        yield from ((self._path.name, rest[at : at + _PIECE_BYTES]) for at in range(0, len(rest), _PIECE_BYTES))

    def _open(self) -> None:
        """Begin the segment, which gets its name with its first frame; the one before goes on where no file can be opened."""
        path = journal.segment_path(self._directory, self._shard, self._segment)
        heading = journal.pack(journal.PLAN, _encode(self._about), *read_clocks())
        try:
            fd = os.open(path.with_suffix(".draft"), _SEGMENT_FLAGS, 0o600)
        except OSError as error:
            if self._fd < 0:
                self._path, self._heading = path, heading
                self.trouble = f"the journal {self._directory} can't be written: {error.strerror or error}"
            return
        if self._fd >= 0:
            os.fdatasync(self._fd)
            os.close(self._fd)
        self._fd, self._path, self._segment, self._offset, self._heading = fd, path, self._segment + 1, 0, heading

    def _write(self) -> None:
        """The thread.  An error stops writing for good: the file is whole up to its last frame."""
        kept_bytes = 0
        while (data := self._queue.get()) is not None:
            began_ns = monotonic_ns()
            rest = self._append(data) if self.trouble is None else self._heading + data
            if rest and self._keeps and kept_bytes + len(rest) <= _BACKLOG_BYTES:
                self._unwritten.append(rest)
                self._heading, kept_bytes = b"", kept_bytes + len(rest)
            self._written += len(data)
            self.write_ns += monotonic_ns() - began_ns
        if self._fd >= 0:
            os.close(self._fd)
        self._path.with_suffix(".draft").unlink(missing_ok=True)  # of a segment without a frame

    def _append(self, data: bytes) -> bytes:
        """Write the frames behind those so far; gives the bytes that could not be written."""
        rest = self._heading + data
        try:
            if self._heading:
                self._path.with_suffix(".draft").rename(self._path)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            self._heading, self._offset = b"", self._offset + len(data)
            if self._offset >= journal.SEGMENT_BYTES:
                self._open()
        except OSError as error:
            self.trouble = f"the journal {self._directory} can't be written: {error.strerror or error}"
        return rest
