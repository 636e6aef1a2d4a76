"""Reads a shard's segments: frames become requests with their reads, and every stamp is on one clock.

The only reader of segments: the reducer, a report and the raw export use it.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from aiperf.rundir import journal
from aiperf.sdk.columns import Ints
from aiperf.sdk.transport import HIDDEN_BITS, LAST_HIDDEN

STEP_NS = 100_000
"""The wall clock was set when it moved by more than this against the monotonic clock between two flushes."""
_SENT, _DONE, _CHUNK = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS), len(journal.CHUNK_FIELDS)
_SENT_INSTANTS = [journal.SENT_FIELDS.index(name) for name in ("due_ns", "started_ns")]
_DONE_INSTANTS = [
    journal.DONE_FIELDS.index(name) for name in ("connected_ns", "sent_ns", "sent_end_ns", "ack_ns", "ended_ns")
]  # fmt: skip
_READS_TOGETHER = 2048
"""Reads that are given to their requests at once."""
READ_BYTES = 4 * 8
HIDDEN_MOST = (1 << HIDDEN_BITS) - 1
"""More in the column of merged segments is, above HIDDEN_BITS, the time since the socket was seen empty."""
DRAINED_BYTES = 8192
"""A read with fewer bytes of body took all that the socket had: transports read at least 64 KiB at once, and the framing of
tiny events takes no more than seven eighths of that."""

Read: TypeAlias = tuple[int, int, int, bytes]
"""One read of an answer: receive stamp and read stamp (ns after the reader's zero), merged TCP segments and perhaps LAST_HIDDEN
(below 0: it is a message, and ~ gives them), body bytes.

The receive stamp is the kernel's where there is one, else the read stamp."""
ShardEvent: TypeAlias = tuple[int, int, dict[str, Any]]
"""A PHASE, LOOP or NODES frame: shard, kind, value."""
_EVENTS = (journal.PHASE, journal.LOOP, journal.NODES)
Position: TypeAlias = tuple[int, int]
"""Number of a segment and an offset in it."""


def is_merged(hidden: int) -> bool:
    """Whether the *hidden* of a read says that TCP segments were merged into it."""
    return hidden not in (0, journal.MESSAGE)


def last_is_hidden(hidden: int) -> bool:
    """Whether the *hidden* of a read says that its last event may have come earlier, too."""
    return bool((hidden if hidden >= 0 else ~hidden) & LAST_HIDDEN)


class JournalRequest(Struct):
    """A request as the journal has it so far.

    sent_row, done_row: int64 of SENT_FIELDS and DONE_FIELDS of :mod:`aiperf.rundir.journal`; *done_row* is empty while the
    request is in flight.  read_rows: int64 of each :data:`Read`, its size in place of its bytes, in pieces; pieces: the bytes,
    of one read or several; size: number of bytes.  texts: values of its TEXT entries, by kind.  segment: number of the segment
    in which it begins.  damaged: a frame is lost that may have been about it.
    """

    sent_row: bytes
    segment: int
    done_row: bytes = b""
    read_rows: list[bytes] = []
    pieces: list[bytes] = []
    size: int = 0
    texts: dict[str, Any] = {}
    damaged: bool = False

    @property
    def sent(self) -> list[int]:
        return array("q", self.sent_row).tolist()

    @property
    def done(self) -> list[int]:
        return array("q", self.done_row).tolist()

    @property
    def reads(self) -> list[Read]:
        numbers = array("q", b"".join(self.read_rows)).tolist()
        hidden = [each & HIDDEN_MOST if each >= 0 else ~(~each & HIDDEN_MOST) for each in numbers[2::4]]
        return list(zip(numbers[::4], numbers[1::4], hidden, self.bodies, strict=True))

    @property
    def bodies(self) -> list[bytes]:
        """The bytes of each read."""
        sizes = array("q", b"".join(self.read_rows)).tolist()[3::4]
        return list(map(BytesIO(b"".join(self.pieces)).read, sizes))

    def empty_before(self, reads: Sequence[Read], zero_ns: int) -> list[int]:
        """The latest instant, for each of its *reads*, at which nothing that it brought was there yet.

        That is when the read before began, which emptied the socket.  Where that read may have left something, or began later
        than the stamp of what was there behind it (other clocks, other transports), it is the receive stamp of that read; and
        before the first read, the head, or the first byte sent.  Of merged reads the transport may know a later one.

        Where other exchanges share the connection (LAST_HIDDEN), reads may have left something of this one: what the transport
        knows counts, and the reads before are good for their receive stamps alone.
        """
        started, sent, ack = (instant - zero_ns for instant in (self.sent[9], self.done[5], self.done[7]))
        # A head in the first read itself says nothing of when the rest came.
        known = [started, sent, *([ack] if ack < reads[0][1] else [])]
        first = reads[0][0]
        empty = max((instant for instant in known if instant <= first), default=started)
        written = max((instant for instant in (started, sent) if instant <= first), default=started)
        found: list[int] = []
        before = None
        rows = array("q", b"".join(self.read_rows)).tolist()[2::4]
        for read, row in zip(reads, rows, strict=True):
            age = (row if row >= 0 else ~row) >> HIDDEN_BITS
            seen = read[1] - age
            if before is not None:
                later = (before[1], before[0]) if len(before[3]) < DRAINED_BYTES else (before[0],)
                empty = next((instant for instant in later if instant <= read[0]), empty)
            if last_is_hidden(row):
                arrived = written if before is None else before[0]
                empty = max(arrived, seen) if age and seen <= read[0] else arrived
            elif age and empty < seen <= read[0]:
                empty = seen
            found.append(min(empty, read[0]))
            before = read
        return found


class News(NamedTuple):
    """Beside requests: PHASE, LOOP and NODES frames, clock steps, and delays of reads behind their kernel stamps (ns)."""

    events: list[ShardEvent]
    clock_steps: int
    lateness: list[Ints]


class ShardReader:
    """Follows the segments of one shard while they are written.

    Every instant is on the run's monotonic clock, of which the one that stamped the segments is *ahead_ns* ahead; those of
    reads are in ns after *zero_ns* of it.

    lost: how many frames each segment lacks, by its name; 0 where the file is missing.  damaged: number of requests that have
    become DAMAGED.
    """

    # Larger than 250 lines: it is the grammar of a segment, a method for each kind of frame and of damage.
    # More than 20 attributes: it has a place in the files, the clocks there, and what is not over.

    def __init__(self, directory: Path, shard: int, zero_ns: int = 0, ahead_ns: int = 0) -> None:
        self.shard = shard
        self._directory, self._zero_ns, self._ahead_ns = directory, zero_ns, ahead_ns
        self._segment = self._offset = 0
        self._clock: tuple[int, int] | None = None  # monotonic clock, and wall minus monotonic, of the flush before
        self._stepped = False  # the wall clock was set between that flush and the one before it
        self._open: dict[int, JournalRequest] = {}
        self._chunks: list[tuple[journal.Frame, bool]] = []  # frames whose reads no request has yet; whether the clock was set
        self._chunk_count = 0
        self._over: list[JournalRequest] = []  # of the frame that is being read; some are not taken yet
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
        return min((request.segment for request in chain(self._open.values(), self._over)), default=self._segment)

    @property
    def unread(self) -> int:
        """Bytes from the position on, in the segments that there are."""
        sizes = [path.stat().st_size for number, path in _segments(self._directory, self.shard) if number >= self._segment]
        return max(0, sum(sizes) - self._offset)

    def missing(self, sent: int, first_requests: Sequence[int] = ()) -> int:
        """How many requests are in no file: at least *sent* were sent, and their numbers have no gaps.

        *first_requests*: from which on other workers went on; the numbers before that nobody saw may be of no request.
        """
        gaps = before = 0
        for first in first_requests:
            if first < self._numbered:
                gaps += first - 1 - max(self._stored.rfind(1, before, first), before - 1)
                before = first
        return max(self._numbered, sent) - self._rows - gaps

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
        return next((each for each, _ in _segments(self._directory, self.shard) if each >= number), None)

    @property
    def has_news(self) -> bool:
        return bool(self._news.events or self._news.clock_steps)

    def take_news(self) -> News:
        """What was seen beside requests since the call before."""
        news, self._news = self._news, News([], 0, [])
        return news

    def finished(self, until_ns: float = math.inf) -> Iterator[JournalRequest]:
        """Read what is new, until *until_ns* (monotonic); gives each request that is over, in the order of their ends."""
        return chain.from_iterable(self._ends(until_ns))

    def _ends(self, until_ns: float) -> Iterator[list[JournalRequest]]:
        """The same as :meth:`finished`, frame by frame."""
        while True:
            path = journal.segment_path(self._directory, self.shard, self._segment)
            rolled = journal.segment_path(self._directory, self.shard, self._segment + 1).exists()
            if path.exists():
                for frame in journal.frames(path, self._offset):
                    self._count(frame, path.name)
                    self._read_clocks(frame)
                    if frame.kind == journal.DONE:
                        self._take_reads()
                        self._over = self._take_ends(frame)
                        yield self._over
                        self._over = []
                    else:
                        self._take_frame(frame)
                    self._offset = frame.end
                    if time.monotonic_ns() > until_ns:
                        break
                self._take_reads()
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
            request = self._open.pop(number)
            request.done_row = array("q", [number, journal.UNFINISHED, *[0] * (_DONE - 2)]).tobytes()
            self._rows += 1
            yield self._cleared(request) if request.damaged else request

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

    def _wait_for_more(self, frame: journal.Frame) -> None:
        """Keep a frame of reads until there are more: each request that has reads in it costs as much as two reads."""
        self._chunks.append((frame, self._stepped))
        self._chunk_count += frame.count
        if self._chunk_count >= _READS_TOGETHER:
            self._take_reads()

    def _take_reads(self) -> None:
        """Append the reads that wait to their requests."""
        if not self._chunks:
            return
        columns = [self._read_columns(frame, stepped=stepped) for frame, stepped in self._chunks]
        requests, stamps, reads, hidden, sizes = np.concatenate(columns, axis=1)
        payload = b"".join([frame.payload[frame.count * _CHUNK * 8 :] for frame, _ in self._chunks])
        self._chunks, self._chunk_count = [], 0
        count, order = len(requests), np.argsort(requests, kind="stable")  # the reads of a request one after the other
        # Reads of a file in memory take a quarter of the time of slices.
        bodies = list(map(list(map(BytesIO(payload).read, sizes.tolist())).__getitem__, order.tolist()))
        rows, owners = np.stack([stamps, reads, hidden, sizes], axis=1)[order].tobytes(), requests[order]
        edges = np.concatenate(([0], np.flatnonzero(owners[1:] != owners[:-1]) + 1))
        lengths, begins = np.add.reduceat(sizes[order], edges).tolist(), edges.tolist()
        for number, i, j, size in zip(owners[edges].tolist(), begins, [*begins[1:], count], lengths, strict=True):
            request = self._open.get(number)  # None where it is in the columns already
            if request is not None:
                request.read_rows.append(rows[i * READ_BYTES : j * READ_BYTES])
                # Many small objects that live long cost more than they say: each is written to cold memory, and read from it.
                request.pieces.append(bodies[i] if j == i + 1 else b"".join(bodies[i:j]))
                request.size += size

    def _read_columns(self, frame: journal.Frame, *, stepped: bool) -> Ints:
        """The requests, stamps, read stamps, hidden segments and sizes of a frame's reads.

        Kernel stamps are wall-clock instants.  In the flush in which the wall clock was set they can't be mapped to the
        monotonic clock, and the read stamps count.
        """
        count = frame.count
        requests, kernel, read, sizes, hidden = np.frombuffer(frame.payload, np.int64, count * _CHUNK).reshape(count, _CHUNK).T
        zero_ns = self._zero_ns + self._ahead_ns
        reads = read - zero_ns
        mapped = np.zeros(count, dtype=bool) if stepped else kernel > 0
        stamps = np.where(mapped, kernel - (frame.wall_ns - frame.mono_ns) - zero_ns, reads)
        if self._is_new(frame):
            # A read that began before its last segment came was not late.
            self._news.lateness.append(np.maximum(reads - stamps, 0)[mapped])
        return np.stack([requests, stamps, reads, hidden, sizes])

    def _take_ends(self, frame: journal.Frame) -> list[JournalRequest]:
        """The requests that are over with this frame."""
        rows = self._on_run_clock(np.frombuffer(frame.payload, np.int64).reshape(-1, _DONE), _DONE_INSTANTS)
        payload = rows.tobytes() if self._ahead_ns else frame.payload
        numbers, take = rows[:, 0].tolist(), self._open.pop
        self._numbered = max(self._numbered, max(numbers) + 1)
        over = []
        for number, done_row in zip(numbers, map(BytesIO(payload).read, repeat(8 * _DONE)), strict=False):
            request = take(number, None)
            if request is not None:
                request.done_row = done_row
                over.append(self._cleared(request) if request.damaged else request)
        self._rows += len(over)
        return over

    def _on_run_clock(self, rows: Ints, instants: Sequence[int]) -> Ints:
        """The rows of a frame with their *instants*, those above 0, on the run's clock."""
        if not self._ahead_ns:
            return rows
        rows = rows.copy()
        stamps = rows[:, instants]
        rows[:, instants] = np.where(stamps > 0, stamps - self._ahead_ns, stamps)
        return rows

    def _legs_on_run_clock(self, legs: list[list[int]]) -> list[list[int]]:
        ahead_ns = self._ahead_ns
        return [[*(instant and instant - ahead_ns for instant in leg[:3]), *leg[3:]] for leg in legs] if ahead_ns else legs

    def _cleared(self, request: JournalRequest) -> JournalRequest:
        """A damaged request that is over, without what is left of its answer."""
        self.damaged += 1
        request.done_row = array("q", [request.done[0], journal.DAMAGED, *request.done[2:]]).tobytes()
        request.read_rows, request.pieces, request.size = [], [], 0
        return request

    def _take_frame(self, frame: journal.Frame) -> None:
        """Take a frame without ends."""
        if frame.kind == journal.CHUNKS:
            self._wait_for_more(frame)
        elif frame.kind == journal.SENT:
            rows = self._on_run_clock(np.frombuffer(frame.payload, np.int64).reshape(frame.count, -1), _SENT_INSTANTS)
            missing = np.full((frame.count, _SENT - rows.shape[1]), -1)  # rows of earlier versions are shorter
            payload, stored = np.hstack([rows, missing]).tobytes(), self._stored
            numbers, segment = rows[:, 0].tolist(), self._segment
            self._numbered = max(self._numbered, max(numbers) + 1)
            for number, row in zip(numbers, map(BytesIO(payload).read, repeat(8 * _SENT)), strict=False):
                if number >= len(stored) or not stored[number]:
                    self._open[number] = JournalRequest(row, segment)
        elif frame.kind == journal.TEXT:
            for number, kind, value in msgspec.msgpack.decode(frame.payload):
                if number in self._open:
                    self._open[number].texts[kind] = value if kind != "legs" else self._legs_on_run_clock(value)
        elif frame.kind in _EVENTS and self._is_new(frame):
            value = msgspec.msgpack.decode(frame.payload)
            if "at_ns" in value:
                value["at_ns"] -= self._ahead_ns
            self._news.events.append((self.shard, frame.kind, value))


def _segments(directory: Path, shard: int) -> Iterator[tuple[int, Path]]:
    """The segments of a shard that there are: number and file."""
    return ((int(path.name.split(".")[1]), path) for path in journal.numbered(directory, f"shard-{shard}.*.seg"))
