"""The journal: append-only files of frames, from which every result is made.

A file is a run of frames.  A frame is a header of 44 bytes and its payload:

    marker · crc32 of the rest of the header · length · crc32 of the payload · kind · count · number (each u32)
    · monotonic ns · wall ns (each i64)

Reading resumes behind a damaged frame, at the next marker with a right checksum.  A worker numbers its frames from 0 on, so
that a missing one shows.  The pair of clocks, read together when the frame was closed, maps the kernel's receive stamps (wall
clock) to the monotonic clock (:mod:`aiperf.rundir.shard_reader`).

Two kinds of file: *segments* ``shard-<i>.<k>.seg`` written by worker i, and *columns* ``columns-<i>.<k>`` written by
reducer i.  ``run.json`` beside them tells what the run is and, from its end on, what the files must hold; a run or report
holds ``lock``.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from aiperf.errors import BadJournal
from aiperf.redaction import private
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.exporter import visible
from aiperf.sdk.plan import Plan
from aiperf.sdk.plan import RunClock as RunClock

MARKER = b"\xf5\xf6\xf7\xf8"
"""The first bytes of a frame.  They are never part of a text in UTF-8."""
_FIELDS = struct.Struct("<IIIIIqq")
HEADER_BYTES = len(MARKER) + 4 + _FIELDS.size

PLAN, PHASE, SENT, CHUNKS, DONE, TEXT, LOOP, COLUMNS, NODES = range(1, 10)
"""Kinds of frame.

PLAN    msgpack ``{"run_id", "shard", "shards", "pid", "started_mono_ns"}``: first frame of a segment
PHASE   msgpack ``{"phase", "event", "at_ns", …}``; event is ``begin`` (``resumed``: by a worker in the place of one that
        died), ``sending_complete``, ``end``, or ``stopped``: the process stood still for ``for_ns`` until then
SENT    int64 rows of SENT_FIELDS: a request was started
CHUNKS  int64 rows of CHUNK_FIELDS, then the bodies one after the other, after HTTP framing
DONE    int64 rows of DONE_FIELDS: a request is over
TEXT    msgpack list of ``[request, kind, value]``; kind is ``error`` (ErrorDetails), ``head`` (status, reason, headers),
        ``prompt`` (what counts as input, where the data set alone doesn't tell: PROMPT) or ``request`` (headers, secrets
        redacted, and the body, None where the data set has it: BODY; see ``Plan.keeps_requests``) or ``trailers`` (pairs of
        name and value)
        or ``legs``, of a request of several exchanges: rows of start, first byte, end (monotonic ns), status, whether it polled
        or DRAINED: the number of bytes of an answer of which its start alone is in CHUNKS, None before it is over
LOOP    msgpack ``{"lag_ns": [int], "cpu_ns": int, "wall_ns": int}``: how late the loop ran, and its CPU time so far
COLUMNS a reduced batch (of the reducer, whose form it is)
NODES   msgpack map of what a driver tells of its trees (``DriverContext.tell``)
"""

DRAINED = "drained"
"""A kind of TEXT."""
PROMPT, BODY = ("of", "was", "now", "own"), ("of", "keep", "new", "own", "end", "last")
"""How a later turn continues the request *of* of its stream and phase; -1 is the first turn as the data set has it.

PROMPT  a text; or ``[text, number of ids]``; or the bytes of the body, where a chat template counts; or a map: the tokens
        of the request before, less those of the text *was*, and those of the text *now*; where *own* is true, a
        space and the texts of the turn in the data set stand behind *now*
BODY    the bytes, of a body that none continues; or a map: *keep* bytes of the body before, the bytes *new*, those of the
        turn's body in the data set from *own*'s first number to its second, and *end* bytes of the end of the body before;
        *last*: no turn follows
"""

SENT_FIELDS = (
    "request", "n", "phase", "session", "turn", "entry", "url", "model", "due_ns", "started_ns", "held_ns", "after", "lane",
    "held_by",
)  # fmt: skip
"""*request* numbers the worker's requests; *due_ns* and *started_ns* are monotonic; due -1: nothing was scheduled.
*held_ns*: how long it waited after its due time for a slot, or for the answer before.  *after*: number of the request whose end
let this one leave at once, -1 where none did.  *lane*: of the driver's lanes, -1 without.  *held_by*: of a tree, the place of
the turn of another stream for whose end this one waited, -1 for none.  Rows of earlier versions lack the last ones."""

CHUNK_FIELDS = ("request", "kernel_ns", "read_ns", "size", "hidden")
"""*kernel_ns*: receive stamp, wall clock, 0 where there was none.  *read_ns*: monotonic, when the read began.  *size*: bytes
of body.  *hidden*: TCP segments merged into this read beyond the last one: earlier pieces are only known to have come since the
read before began, or since so many ns before *read_ns* as the bits above :data:`~aiperf.sdk.transport.HIDDEN_BITS` say.  Below
0: the body is one whole message, and ~*hidden* is that number, 0 where it came at the stamp."""
MESSAGE = -1
"""The value of *hidden* for a whole message that came at its stamp."""

DONE_FIELDS = (
    "request", "outcome", "status", "flags", "connected_ns", "sent_ns", "sent_end_ns", "ack_ns", "ended_ns",
    "bytes_sent", "bytes_received", "dns_ns", "connect_ns", "tls_ns",
)  # fmt: skip
"""Times are monotonic ns, 0 where the request never came that far; *dns_ns*, *connect_ns*, *tls_ns* are durations.
*flags*: those of :mod:`aiperf.sdk.transport`; rows of earlier versions have RECONNECTED for RESENT, too."""

COMPLETED, ERROR, CANCELLED, ABORTED, UNFINISHED, NEVER_SENT, DAMAGED, UNKNOWN, OVERFLOWED, TRUNCATED, RELEASED = range(11)
OUTCOMES = (
    "completed", "error", "cancelled", "aborted", "unfinished", "never_sent", "damaged", "unknown", "overflowed", "truncated",
    "released",
)  # fmt: skip
"""Outcomes of an arrival; workers write the first four and the last: the prompt was longer than the model's context, which the
driver takes for an end of the conversation and not for a failure.

UNFINISHED: the request's worker was lost, or could not write.  DAMAGED: the journal may have lost a part of what was observed.
NEVER_SENT and UNKNOWN: no request is in the journal; UNKNOWN where one may have been sent.
TRUNCATED and RELEASED: turns of a tree that has begun, which are no arrivals: the phase ended before; or the turn's
conversation, or one that starts it, had ended.
"""
RECORDED = (COMPLETED, ERROR, CANCELLED, OVERFLOWED)
"""Outcomes of requests that have a record of their own: their last byte is their end."""

_LAYOUT = 2
"""Of the journal's files."""
SEGMENT_BYTES = 64 << 20
FLUSH_BYTES = 64 << 10


class Frame(Struct, frozen=True):
    """A whole frame.  *skipped*: damaged bytes before it.  *end*: offset of its end in the file."""

    kind: int
    count: int
    number: int
    mono_ns: int
    wall_ns: int
    payload: bytes
    skipped: int
    end: int


def pack(kind: int, payload: bytes, mono_ns: int, wall_ns: int, count: int = 0, number: int = 0) -> bytes:
    """A frame's bytes."""
    fields = _FIELDS.pack(len(payload), zlib.crc32(payload), kind, count, number, mono_ns, wall_ns)
    return b"".join((MARKER, zlib.crc32(fields).to_bytes(4, "little"), fields, payload))


def _payload_bytes(header: bytes) -> int | None:
    """The length of the payload behind a header; None where the header is damaged."""
    fields = header[-_FIELDS.size :]
    whole = len(header) == HEADER_BYTES and header == b"".join((MARKER, zlib.crc32(fields).to_bytes(4, "little"), fields))
    return int.from_bytes(fields[:4], "little") if whole else None


def frames(path: Path, offset: int = 0) -> Iterator[Frame]:
    """The whole frames of a file from *offset* on, without those that are damaged or not written to their end.

    A reader that follows a file calls it again with the last ``frame.end``.
    """
    with path.open("rb") as file:
        begin = offset
        file.seek(begin)
        while len(header := file.read(HEADER_BYTES)) == HEADER_BYTES:
            frame = _frame(file, header, begin, offset)
            if frame is None:
                file.seek(begin + 1)
                behind = file.read().find(MARKER)
                if behind < 0:
                    return
                # It may have been half written when it was read, and is whole now that another one is behind it.
                file.seek(begin)
                frame = _frame(file, file.read(HEADER_BYTES), begin, offset)
            if frame is None:
                begin += 1 + behind
                file.seek(begin)
                continue
            yield frame
            begin = offset = frame.end


def _frame(file: BinaryIO, header: bytes, begin: int, offset: int) -> Frame | None:
    """The frame at *begin*, of which *header* is read; None where it is damaged or not whole."""
    length = _payload_bytes(header)
    if length is None:
        return None
    payload = file.read(length)
    _, crc, kind, count, number, mono_ns, wall_ns = _FIELDS.unpack_from(header, len(MARKER) + 4)
    if length != len(payload) or zlib.crc32(payload) != crc:
        return None
    return Frame(kind, count, number, mono_ns, wall_ns, payload, begin - offset, begin + HEADER_BYTES + length)


def torn(path: Path, offset: int) -> bool:
    """Whether the file ends at *offset*, or with the beginning of a frame, as a kill leaves it."""
    with path.open("rb") as file:
        file.seek(offset)
        header, rest = file.read(HEADER_BYTES), file.read()
    return len(header) < HEADER_BYTES or len(rest) < (_payload_bytes(header) or 0)


def segment_path(directory: Path, shard: int, k: int) -> Path:
    """The *k*-th file of a worker's frames."""
    return directory / f"shard-{shard}.{k}.seg"


def columns_path(directory: Path, reducer: int, k: int) -> Path:
    """The *k*-th file of a reducer's columns."""
    return directory / f"columns-{reducer}.{k}"


def numbered(directory: Path, pattern: str) -> list[Path]:
    """Files matching *pattern* (``shard-*.seg``), by their two numbers."""
    return sorted(directory.glob(pattern), key=lambda path: [int(digits) for digits in re.findall(r"\d+", path.name)])


def request_prefix(run_id: str, shard: int) -> str:
    """A request's id without its number (12 hex digits).

    Ids of requests and sessions are UUID-shaped, unique per run, and a function of numbers in the journal: the worker sends
    them without drawing random bytes, and the reducer computes the same ones.
    """
    return f"{run_id[:8]}-{run_id[8:12]}-8{shard & 0xFFF:03x}-a000-"


def request_id(run_id: str, shard: int, request: int) -> str:
    """``X-Request-ID`` of a worker's request (a UUID of version 8, RFC 9562).  *run_id*: 12 hex digits."""
    return f"{request_prefix(run_id, shard)}{request:012x}"


def session_prefix(run_id: str, phase: int) -> str:
    """The id that all turns of a session share, without its number (12 hex digits)."""
    return f"{run_id[:8]}-{run_id[8:12]}-8{phase & 0xFFF:03x}-b000-"


def stream_id(prefix: str, session: int, stream: int) -> str:
    """The id of a stream of a tree, which its turns share; that of stream 0 is the session's.

    *prefix*: of :func:`session_prefix`.  Its 000 is the stream's number; what is above 4095 stands before the session's number.
    """
    return f"{prefix[:-4]}{stream & 0xFFF:03x}-{(stream >> 12) << 32 | session:012x}"


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; OSError (a full disk) is the caller's to handle."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class RunEnd(Struct, frozen=True):
    """What the run itself recorded at its end, and what its files must hold since then.

    cancelled: a signal ended the load before its last arrival had ended.  hurried: a signal came, whenever, and whoever sent it
    wants the end soon.  incomplete: why the run was cut short, None where nothing did.  requests: by shard, how many it has
    sent; absent where the run can't know.  died: shards that lost a process.  columns: size of each file of columns in bytes.
    looks: what verdicts found when they asked the servers behind the load.  sites: of a run that had some, their clocks, and
    which were lost.  machine: as that of ``aiperf.sdk.summary.Measurement``.  first_requests: by shard of a site that was begun
    again, from which number on each further worker numbered its requests; numbers before it may be of none.
    """

    cancelled: bool = False
    incomplete: str | None = None
    warnings: tuple[str, ...] = ()
    requests: dict[int, int] = {}
    died: tuple[int, ...] = ()
    columns: dict[str, int] = {}
    hurried: bool = False
    looks: dict[str, str] = {}
    sites: tuple[SiteClock, ...] = ()
    machine: str | None = None
    first_requests: dict[int, tuple[int, ...]] = {}


class _Run(Struct, frozen=True):
    plan: Plan
    clock: RunClock
    end: RunEnd | None = None
    layout: int = 1


def save_run(directory: Path, plan: Plan, clock: RunClock, end: RunEnd | None = None) -> None:
    """Write ``run.json`` atomically, without the secrets of plugins."""
    draft = directory / "run.draft"
    run = msgspec.json.encode(_Run(plan.public(), clock, end, _LAYOUT))
    private(draft).write_bytes(visible(msgspec.json.format(run, indent=2)))
    draft.replace(directory / "run.json")


def hold(directory: Path) -> BinaryIO:
    """Lock the directory for as long as the file stays open; the lock ends with the process.

    Raises:
        BadJournal: Another process has the lock.
    """
    file = private(directory / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise BadJournal(f"{directory.parent} is in use by another run or report", "wait until it is over") from error
    return file


def load_run(directory: Path) -> tuple[Plan, RunClock]:
    """The plan and the clock of ``run.json``.

    Raises:
        BadJournal: The file is missing or unreadable, or the journal is of another version.
    """
    run = _read_run(directory)
    if run.layout != _LAYOUT:
        raise BadJournal(f"{directory} is of version {run.plan.run.version}", "report it with the version that made the run")
    return run.plan, run.clock


def load_end(directory: Path) -> RunEnd | None:
    """The end that ``run.json`` records; None where the run was interrupted.  Raises as :func:`load_run`."""
    return _read_run(directory).end


def _read_run(directory: Path) -> _Run:
    path = directory / "run.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Run)
    except FileNotFoundError:
        missing = f"{directory.parent} holds no run: {path} is not there"
        raise BadJournal(missing, "give the artifact directory of a run") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise BadJournal(f"{path} can't be read: {error}") from error
