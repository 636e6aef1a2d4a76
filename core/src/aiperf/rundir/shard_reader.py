"""Reads a shard's segments: frames become requests with their reads, and every stamp is on one clock.

The only reader of segments: the reducer, a report and the raw export use it.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter, deque
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from aiperf.rundir import journal
from aiperf.sdk.columns import Ints

STEP_NS = 100_000
"""The wall clock was set when it moved by more than this against the monotonic clock between two flushes."""
_SENT, _DONE, _CHUNK = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS), len(journal.CHUNK_FIELDS)

Read: TypeAlias = tuple[int, int, int, bytes]
"""One read of an answer: receive stamp and read stamp (ns after the reader's zero), merged TCP segments (``journal.MESSAGE``:
it is a message), body bytes.

The receive stamp is the kernel's where there is one, else the read stamp."""
ShardEvent: TypeAlias = tuple[int, int, dict[str, Any]]
"""A PHASE or LOOP frame: shard, kind, value."""
Position: TypeAlias = tuple[int, int]
"""Number of a segment and an offset in it."""


class JournalRequest(Struct):
    """A request as the journal has it so far.

    sent, done: values of SENT_FIELDS and DONE_FIELDS of :mod:`aiperf.rundir.journal`; *done* is empty while the request is
    in flight.  texts: values of its TEXT entries, by kind.  segment: number of the segment in which it begins.
    damaged: a frame is lost that may have been about it.
    """

    sent: list[int]
    segment: int
    done: list[int] = []
    reads: list[Read] = []
    texts: dict[str, Any] = {}
    damaged: bool = False


class News(NamedTuple):
    """Beside requests: PHASE and LOOP frames, clock steps, and delays of reads behind their kernel stamps (ns)."""

    events: list[ShardEvent]
    clock_steps: int
    lateness: list[Ints]


class ShardReader:
    """Follows the segments of one shard while they are written.  Instants are in ns after *zero_ns* of the monotonic clock.

    lost: how many frames each segment lacks, by its name; 0 where the file is missing.  damaged: number of requests that have
    become DAMAGED.
    """

    def __init__(self, directory: Path, shard: int, zero_ns: int = 0) -> None:
        self.shard = shard
        self._directory, self._zero_ns = directory, zero_ns
        self._segment = self._offset = 0
        self._clock: tuple[int, int] | None = None  # monotonic clock, and wall minus monotonic, of the flush before
        self._stepped = False  # the wall clock was set between that flush and the one before it
        self._open: dict[int, JournalRequest] = {}
        self._reads: dict[int, list[Read]] = {}  # of the same requests
        self._stored = bytearray()  # by request: 1 where it is in the columns
        self._stored_to: Position = (0, 0)
        self._rows = self._numbered = self.damaged = 0
        self._news = News([], 0, [])
        self._process: object = None  # which worker wrote the segment
        self._next_frame: int | None = 0  # None where its number is unknown
        self.lost: Counter[str] = Counter()

    @property
    def position(self) -> Position:
        """Every frame before this one is read."""
        return self._segment, self._offset

    @property
    def oldest_segment(self) -> int:
        """The first segment with a part of a request that is still open; the current segment where none is."""
        return min((request.segment for request in self._open.values()), default=self._segment)

    def missing(self, sent: int) -> int:
        """How many requests are in no file: their numbers have no gaps, and at least *sent* were sent."""
        return max(self._numbered, sent) - self._rows

    def skip_stored(self, requests: Ints) -> None:
        """Leave these requests out: they are in the columns."""
        end = int(requests.max()) + 1
        self._rows += len(requests)
        self._numbered = max(self._numbered, end)
        self._stored.extend(bytes(max(0, end - len(self._stored))))
        np.frombuffer(self._stored, dtype=np.uint8)[requests] = 1

    def skip_events(self, before: Position) -> None:
        """Give no news of frames up to *before*: the columns have it."""
        self._stored_to = max(self._stored_to, before)

    def skip_dropped(self) -> None:
        """Begin with the first segment that is there."""
        self._segment = self._segment_from(0) or 0
        self._next_frame = None if self._segment else 0

    def _segment_from(self, number: int) -> int | None:
        """The first segment there is from *number* on; None where there is none."""
        paths = journal.numbered(self._directory, f"shard-{self.shard}.*.seg")
        return next((each for path in paths if (each := int(path.name.split(".")[1])) >= number), None)

    @property
    def has_news(self) -> bool:
        return bool(self._news.events or self._news.clock_steps)

    def take_news(self) -> News:
        """What was seen beside requests since the call before."""
        news, self._news = self._news, News([], 0, [])
        return news

    def finished(self, until_ns: float = math.inf) -> Iterator[JournalRequest]:
        """Read what is new, until *until_ns* (monotonic); gives each request that is over, in the order of their ends."""
        while True:
            path = journal.segment_path(self._directory, self.shard, self._segment)
            rolled = journal.segment_path(self._directory, self.shard, self._segment + 1).exists()
            if path.exists():
                for frame in journal.frames(path, self._offset):
                    self._count(frame, path.name)
                    self._read_clocks(frame)
                    if frame.kind == journal.DONE:
                        yield from self._take_ends(frame)
                    else:
                        self._take_frame(frame)
                    self._offset = frame.end
                    if time.monotonic_ns() > until_ns:
                        return
            if not rolled:
                return
            self._check_end(path)
            self._segment, self._offset = self._segment + 1, 0

    def unfinished(self, *, ended: bool = False) -> Iterator[JournalRequest]:
        """Gives each request that is still open, as UNFINISHED; *ended*: as DAMAGED, because the shard had ended them all.

        Segments behind a lost one are read before.
        """
        while (after := self._segment_from(self._segment + 1)) is not None:
            for lost in range(self._segment + 1, after):
                self._lose(journal.segment_path(self._directory, self.shard, lost).name, 0)
            self._segment, self._offset, self._next_frame = after, 0, None
            yield from self.finished()
        path = journal.segment_path(self._directory, self.shard, self._segment)
        self._check_end(path)
        if ended and not all(request.damaged for request in self._open.values()):
            self._lose(path.name)
        for number in list(self._open):
            yield self._ended([number, journal.UNFINISHED, *[0] * (_DONE - 2)])

    def _check_end(self, path: Path) -> None:
        """Notice that the last frames of a segment are damaged.  A frame that a kill left half written is none."""
        if path.exists() and not journal.torn(path, self._offset):
            self._lose(path.name)

    def _count(self, frame: journal.Frame, segment: str) -> None:
        """Notice that frames before this one are missing."""
        if frame.kind == journal.PLAN:
            about = msgspec.msgpack.decode(frame.payload)
            process = about.get("pid"), about.get("started_mono_ns")
            if self._process not in (None, process):
                self._next_frame = 0  # the worker takes the place of one that died
            self._process = process
            return
        if self._next_frame is not None and frame.number != self._next_frame:
            self._lose(segment, max(1, frame.number - self._next_frame))
        self._next_frame = frame.number + 1

    def _lose(self, segment: str, frames: int = 1) -> None:
        """Frames of the segment are missing: any request in flight may have lost a part."""
        self.lost[segment] += frames
        for request in self._open.values():
            request.damaged = True

    def _is_new(self, frame: journal.Frame) -> bool:
        return (self._segment, frame.end) > self._stored_to

    def _read_clocks(self, frame: journal.Frame) -> None:
        """Notice that the wall clock was set.  All frames of a flush carry one reading of the clocks."""
        offset = frame.wall_ns - frame.mono_ns
        before_ns, before = self._clock or (-1, offset)
        if before_ns == frame.mono_ns:
            return
        self._stepped = abs(offset - before) > STEP_NS
        if self._stepped and self._is_new(frame):
            self._news = self._news._replace(clock_steps=self._news.clock_steps + 1)
        self._clock = frame.mono_ns, offset

    def _take_reads(self, frame: journal.Frame) -> None:
        """Append reads to their requests.

        Kernel stamps are wall-clock instants.  In the flush in which the wall clock was set they can't be mapped to the
        monotonic clock, and the read stamps count.
        """
        count, payload = frame.count, frame.payload
        requests, kernel, read, sizes, hidden = np.frombuffer(payload, np.int64, count * _CHUNK).reshape(count, _CHUNK).T
        reads = read - self._zero_ns
        mapped = np.zeros(count, dtype=bool) if self._stepped else kernel > 0
        stamps = np.where(mapped, kernel - (frame.wall_ns - frame.mono_ns) - self._zero_ns, reads)
        if self._is_new(frame):
            self._news.lateness.append((reads - stamps)[mapped])
        begin = count * _CHUNK * 8
        ends = (np.cumsum(sizes) + begin).tolist()
        bodies = [payload[i:j] for i, j in zip([begin, *ends], ends, strict=False)]
        stray: list[Read] = []  # of requests that are in the columns already
        owners = map(self._reads.get, requests.tolist(), repeat(stray))
        columns = zip(stamps.tolist(), reads.tolist(), hidden.tolist(), bodies, strict=True)
        deque(map(list.append, owners, columns), maxlen=0)  # half of what a loop takes

    def _take_ends(self, frame: journal.Frame) -> Iterator[JournalRequest]:
        rows = array("q", frame.payload).tolist()
        self._numbered = max(self._numbered, max(rows[::_DONE]) + 1)
        for i in range(0, len(rows), _DONE):
            if rows[i] in self._open:
                yield self._ended(rows[i : i + _DONE])

    def _ended(self, done: list[int]) -> JournalRequest:
        request = self._open.pop(done[0])
        request.done = done
        del self._reads[done[0]]
        self._rows += 1
        if request.damaged:
            self.damaged += 1
            request.done[1], request.reads = journal.DAMAGED, []
        return request

    def _take_frame(self, frame: journal.Frame) -> None:
        """Take a frame without ends."""
        if frame.kind == journal.CHUNKS:
            self._take_reads(frame)
        elif frame.kind == journal.SENT:
            rows = array("q", frame.payload).tolist()
            width = len(rows) // frame.count
            self._numbered = max(self._numbered, max(rows[::width]) + 1)
            for i in range(0, len(rows), width):
                number = rows[i]
                if number >= len(self._stored) or not self._stored[number]:
                    sent = rows[i : i + width] + [-1] * (_SENT - width)  # rows of earlier versions are shorter
                    request = self._open[number] = JournalRequest(sent, self._segment)
                    self._reads[number] = request.reads
        elif frame.kind == journal.TEXT:
            for number, kind, value in msgspec.msgpack.decode(frame.payload):
                if number in self._open:
                    self._open[number].texts[kind] = value
        elif frame.kind in (journal.PHASE, journal.LOOP) and self._is_new(frame):
            self._news.events.append((self.shard, frame.kind, msgspec.msgpack.decode(frame.payload)))


class Observation(Struct):
    """A finished request.

    sent, done: SENT_FIELDS and DONE_FIELDS of :mod:`aiperf.rundir.journal` by name.  texts: its TEXT entries by kind.  reads:
    the instant of each (monotonic ns; the kernel's receive stamp where there is one) and its body bytes.  merged_since: of a
    read of merged TCP segments, when the socket was last seen empty before it (monotonic ns), else None.
    """

    sent: dict[str, int]
    done: dict[str, int]
    texts: dict[str, Any]
    reads: list[tuple[int, bytes]]
    merged_since: list[int | None] = []


def observations(directory: Path, shard: int) -> Iterator[Observation]:
    """Every finished request of the shard, in the order in which they ended, with memory for those in flight alone.

    *directory* is the journal's.
    """
    reader = ShardReader(directory, shard)
    reader.skip_dropped()
    for request in reader.finished():
        sent = dict(zip(journal.SENT_FIELDS, request.sent, strict=True))
        done = dict(zip(journal.DONE_FIELDS, request.done, strict=True))
        seen = (sent["started_ns"], *(read[1] for read in request.reads))
        since = [before if read[2] > 0 else None for before, read in zip(seen, request.reads, strict=False)]
        yield Observation(sent, done, request.texts, [(read[0], read[3]) for read in request.reads], since)
