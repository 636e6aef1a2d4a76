"""Batches of finished requests: collected row by row, stored as frames of ``columns-<r>.<k>``, and read back as columns."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.parts.segments import News, Position, ShardEvent
from aiperf.sdk.columns import ABSENT, ANSWER_TEXTS, NUMBERS, REPEAT, SITE, BatchTexts, Column, Floats, Ints, RecordBatch, Row
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import Plan
from msgspec import Struct
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from aiperf_reducer_columns.reduce.answer import Answer
from aiperf_reducer_columns.reduce.asked import repeats, settings, sources
from aiperf_reducer_columns.reduce.gaps import first_widths, instants, interval_widths
from aiperf_reducer_columns.reduce.grading import Graded, grade_columns
from aiperf_reducer_columns.reduce.outcomes import GRADES, Key, Outcome, read_outcomes, with_outcomes
from aiperf_reducer_columns.reduce.packing import pack, unpacked
from aiperf_reducer_columns.reduce.reasons import coded, decoded
from aiperf_reducer_columns.reduce.tree_rows import TreeRows, prefix_of
from aiperf_reducer_columns.reduce.usage import Usage
from aiperf_reducer_columns.statistics.fold import Buckets
from aiperf_reducer_columns.statistics.phase_counts import CUT

BATCH_REQUESTS = 4096
BATCH_CHUNKS = 1 << 18
"""Pieces of content from which a batch is full."""
_pack_row = struct.Struct(f"{len(NUMBERS)}d").pack
FILE_BYTES = 64 << 20
"""A file of columns that is longer is full."""
_VERSION = 1
"""The version of the layout of stored batches."""
_HINT = "report it with the version that made the run"
_NO_ANSWER = f"no answer: {journal.OUTCOMES[journal.ERROR]}"
_INCOMPLETE = (
    b'{"message":"the stream ended without a finish reason or an end marker, which other answers have",'
    b'"type":"IncompleteStream"}'
).decode()
_pack_batch = msgspec.msgpack.Encoder().encode


class StoredBatch(Struct, frozen=True, omit_defaults=True):
    """A batch on disk.

    numbers: float64 of the columns *names*, one column after the other.  stamps, kinds: of each piece of content, its instant
    (int64 ns since the run's start) and the bits of ``reduce/answer.py``; lengths: pieces per request (int64); since: of each
    marked piece, when the socket was last seen empty before it.
    errors: ErrorDetails as JSON, by row; traces: likewise :class:`aiperf.sdk.columns.WireTrace`, where the run keeps them;
    grades: of requests with something to grade.  further: float64 of each of the endpoint's ``numbers``.
    legs: :class:`aiperf.sdk.columns.Leg` of each exchange of a request as JSON, where the endpoint has several.
    answers: reasoning and text of each answer with either, where an exporter wants them; None where none does.
    texts: each of the endpoint's ``texts``, by row.
    models: the model asked for and the model that answered, of some answers.
    reasons: why answers ended, each text once; reason_places: of each request, its place among them (``reduce/reasons.py``).
    events: PHASE, LOOP and NODES frames since the batch before.  positions: how far each shard had been read.  steps: clock
    steps since the batch before.  lateness: delays of reads behind their kernel stamps; intervals: widths of the intervals in
    which marked pieces came, behind the first read of an answer; first_intervals: of those of first content; all in ns.
    """

    count: int
    numbers: bytes
    stamps: bytes
    kinds: bytes
    lengths: bytes
    errors: dict[int, str] = {}
    traces: dict[int, str] = {}
    events: list[ShardEvent] = []
    positions: dict[int, Position] = {}
    steps: int = 0
    lateness: Buckets | None = None
    intervals: Buckets | None = None
    first_intervals: Buckets | None = None
    version: int = _VERSION  # of this layout
    names: tuple[str, ...] = ()  # NUMBERS where empty
    grades: dict[int, Graded] = {}
    since: bytes = b""
    further: dict[str, bytes] = {}
    legs: dict[int, str] = {}
    answers: dict[int, tuple[str, str]] | None = None
    models: list[tuple[str, str]] = []
    texts: dict[str, dict[int, str]] = {}
    reasons: list[str] = []
    reason_places: bytes = b""
    packed: bool = False  # numbers are packed, on disk alone
    corrected: bool = False  # of a site whose clock has drifted, with instants of the run's clock nevertheless

    @property
    def table(self) -> Floats:
        """The numbers, a row for each column."""
        return np.frombuffer(self.numbers, dtype=np.float64).reshape(len(self.names or NUMBERS), self.count)

    def columns(self) -> dict[str, Floats]:
        """The columns of NUMBERS; one that was not stored is absent."""
        stored = self.names or NUMBERS
        known = dict(zip(stored, self.table, strict=True))
        return known if stored == NUMBERS else {name: known.get(name, np.full(self.count, ABSENT)) for name in NUMBERS}


    @property
    def has_finish(self) -> bool:
        """Whether a stream of the batch has a reason for its end."""
        return bool((self.columns()["finish"] == 2).any())

    @property
    def endless(self) -> list[int]:
        """Rows of good answers, whole streams, with neither a reason for their end nor an end marker."""
        numbers = self.columns()
        rows: list[int] = np.flatnonzero((numbers["outcome"] == journal.COMPLETED) & (numbers["finish"] == 0)).tolist()
        return rows


def read_batches(path: Path, offset: int = 0) -> Iterator[tuple[StoredBatch, journal.Frame]]:
    """The batches of a file of columns, each with its frame.  *offset*: the end of a frame.

    Raises:
        BadJournal: Another version of this program wrote it.
    """
    for frame in journal.frames(path, offset):
        try:
            stored = msgspec.msgpack.decode(frame.payload, type=StoredBatch)
            if stored.packed:
                stored = replace(stored, numbers=unpacked(stored.numbers).tobytes(), packed=False)
        except (msgspec.MsgspecError, ValueError, KeyError) as error:
            raise BadJournal(f"{path} can't be read: {error}", _HINT) from error
        if stored.version != _VERSION or len(stored.numbers) != stored.count * len(stored.names or NUMBERS) * 8:
            raise BadJournal(f"{path} has columns of version {stored.version}, and not {_VERSION} as this program", _HINT)
        yield stored, frame


REST = "rest"
"""A folder beside the columns, while a report is made: columns of requests that no reducer has stored."""


def stored_batches(directory: Path) -> Iterator[StoredBatch]:
    """The batches of a journal, with requests or without.

    Raises:
        BadJournal: Another version of this program wrote them.
    """
    for path in journal.numbered(directory, "columns-*.*"):
        yield from (stored for stored, _ in read_batches(path))


def batches_behind(directory: Path, reducer: int, position: Position) -> Iterator[StoredBatch]:
    """The batches with requests that the reducer stored behind *position*, a number of its files and an offset there."""
    number, offset = position
    while (path := journal.columns_path(directory, reducer, number)).exists():
        yield from (stored for stored, _ in read_batches(path, offset) if stored.count)
        number, offset = number + 1, 0


def framed(stored: StoredBatch) -> bytes:
    """The batch as a frame of a file of columns."""
    if len(packed := pack(stored.table)) < len(stored.numbers):
        stored = replace(stored, numbers=packed, packed=True)
    return journal.pack(journal.COLUMNS, _pack_batch(stored), time.monotonic_ns(), time.time_ns(), stored.count)


class ColumnsWriter:
    """Appends batches to the files of one reducer."""

    def __init__(self, directory: Path, reducer: int) -> None:
        self._directory, self._reducer = directory, reducer
        self._file, self._number, self._bytes = -1, 0, 0

    @property
    def position(self) -> Position:
        """Number of the file, and its size."""
        return self._number, self._bytes

    def resume(self, path: Path, end: int) -> None:
        """Go on in *path* at *end*: what is behind it, a kill left half written."""
        os.truncate(path, end)
        self._number, self._bytes = int(path.name.split(".")[1]), end

    def append(self, stored: StoredBatch) -> None:
        """Write the batch, or nothing of it; OSError (a full disk) is the caller's to handle."""
        if self._file >= 0 and self._bytes > FILE_BYTES:
            self.close()
            self._bytes, self._number = 0, self._number + 1
        if self._file < 0:
            path = journal.columns_path(self._directory, self._reducer, self._number)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        data = framed(stored)
        try:
            journal.write_all(self._file, data)
        except OSError:
            os.ftruncate(self._file, self._bytes)  # it is copied while it grows
            raise
        self._bytes += len(data)

    def close(self) -> None:
        """Make what was written durable."""
        if self._file >= 0:
            os.fdatasync(self._file)
            os.close(self._file)
            self._file = -1


class Rows(NamedTuple):
    """Requests of a batch, without errors.

    numbers: a row for each of NUMBERS.  stamps, kinds, lengths, since: as those of :class:`StoredBatch`.  reasons: why each
    answer ended; None where nobody said.
    """

    numbers: Floats
    stamps: Ints
    kinds: NDArray[np.uint8]
    lengths: Ints
    since: Ints
    reasons: Sequence[str | None] = ()


_NO_INTS = np.empty(0, dtype=np.int64)
_NO_ROWS = Rows(np.empty((len(NUMBERS), 0)), _NO_INTS, np.empty(0, dtype=np.uint8), _NO_INTS, _NO_INTS)


class OpenBatch:
    """Finished requests, not stored yet.

    *further*: names of the endpoint's ``numbers``.  *answers*: whether to keep texts.  *shown*: the reason of an end as files
    may have it.
    """

    def __init__(self, further: Sequence[str] = (), *, answers: bool = False, shown: Callable[[str], str] = str) -> None:
        self._shown, self._reasons = shown, list[str | None]()
        self._answers: dict[int, tuple[str, str]] | None = {} if answers else None
        self._names, self._further = tuple(further), list[float]()
        self._parts: list[Rows] = []
        self._count = self._chunks = 0
        self._clear()
        self._errors: dict[int, str] = {}
        self._traces: dict[int, str] = {}
        self._legs: dict[int, str] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._grades: dict[int, Graded] = {}

    def _clear(self) -> None:
        """Begin the rows that come one at a time."""
        self._numbers = bytearray()
        self._stamps: list[int] = []
        self._kinds = bytearray()
        self._lengths: list[int] = []
        self._since: list[int] = []

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        """Number of requests until it is full; 0 where it is."""
        return 0 if self._chunks >= BATCH_CHUNKS else max(0, BATCH_REQUESTS - self._count)

    def extend(self, rows: Rows) -> None:
        """Take finished requests."""
        self._gather()
        self._parts.append(rows)
        self._reasons += rows.reasons
        self._count += len(rows.lengths)
        self._chunks += len(rows.stamps)

    def _gather(self) -> None:
        """Make the rows that came one at a time a part."""
        if self._lengths:
            numbers = np.frombuffer(bytes(self._numbers), dtype=np.float64).reshape(-1, len(NUMBERS)).T
            stamps, lengths, since = (np.array(each, dtype=np.int64) for each in (self._stamps, self._lengths, self._since))
            self._parts.append(Rows(numbers, stamps, np.frombuffer(bytes(self._kinds), dtype=np.uint8), lengths, since))
            self._clear()

    def add(
        self, row: Row, usage: Usage, answer: Answer, error: ErrorDetails | None, trace: str | None, grade: Graded | None,
        further: Sequence[float] = (), legs: str | None = None, texts: Mapping[str, str] | None = None,
        reason: str | None = None,
    ) -> None:  # fmt: skip
        """Take a finished request.

        *further*: of the endpoint's ``numbers``, each; *texts*: of its ``texts``.  *reason*: why the answer ended.

        Raises:
            Exception: A value can't be stored; then nothing is taken.
        """
        counts = [ABSENT if count is None else count for count in astuple(usage)]
        numbers, told = _pack_row(*counts, *astuple(row)), None if error is None else _text(error)
        kept = (answer.reasoning, answer.text) if self._answers is not None else ()
        if grade is not None or texts or any(kept):  # of these a plugin may have made anything
            _pack_batch((grade, texts, kept))
        number = self._count
        self._count += 1
        self._chunks += len(answer.stamps)
        self._lengths.append(len(answer.stamps))
        self._numbers += numbers
        self._stamps += answer.stamps
        self._kinds += answer.kinds
        self._since += answer.since
        self._reasons.append(reason)
        self._further += further
        if told is not None:
            self._errors[number] = told
        if trace is not None:
            self._traces[number] = trace
        if legs is not None:
            self._legs[number] = legs
        if self._answers is not None and (answer.reasoning or answer.text):
            self._answers[number] = answer.reasoning, answer.text
        if grade is not None:
            self._grades[number] = grade
        for name, text in (texts or {}).items():
            self._texts.setdefault(name, {})[number] = text

    def close(
        self, news: Iterable[News], positions: dict[int, Position], models: Sequence[tuple[str, str]] = ()
    ) -> StoredBatch:
        """The batch as it is stored, with the *news* of the shards since the batch before."""
        self._gather()
        columns = zip(*(part[:-1] for part in (_NO_ROWS, *self._parts)), strict=True)
        numbers, stamps, kinds, lengths, since = (np.concatenate(parts, axis=-1) for parts in columns)
        reasons, places = coded(self._reasons, self._shown)
        lateness, intervals, first = Buckets(), Buckets(), Buckets()
        lateness.add(np.concatenate([np.empty(0), *(part for each in news for part in each.lateness)]))
        intervals.add(interval_widths(stamps, kinds, lengths, since))
        first.add(first_widths(stamps, kinds, lengths, since))
        return StoredBatch(
            len(self), numbers.tobytes(), stamps.tobytes(), kinds.tobytes(), lengths.tobytes(), self._errors, self._traces,
            since=since.tobytes(), names=NUMBERS, grades=self._grades,
            events=[event for each in news for event in each.events], positions=positions,
            steps=sum(each.clock_steps for each in news), lateness=lateness, intervals=intervals, first_intervals=first,
            further={name: np.array(self._further[at :: len(self._names)]).tobytes() for at, name in enumerate(self._names)},
            legs=self._legs, answers=self._answers, models=list(models), texts=self._texts,
            reasons=reasons, reason_places=places,
        )  # fmt: skip


def batches(directory: Path, plan: Plan) -> Iterator[RecordBatch]:
    """The finished requests in a journal's columns, batch by batch, with what slow graders made of them since."""
    store, finishing = Store(directory), any(stored.has_finish for stored in stored_batches(directory))
    outcomes = read_outcomes(directory / GRADES)[0] if plan.plugins.grading_timeout_s is not None else {}
    for stored in stored_batches(directory):
        if stored.count:
            yield batch_of(_graded(stored, outcomes) if outcomes else stored, plan, store, finishing=finishing)


def _graded(stored: StoredBatch, outcomes: Mapping[Key, Outcome]) -> StoredBatch:
    columns = stored.columns()
    keys = {row: (int(columns["shard"][row]), int(columns["request"][row])) for row in stored.grades}
    return replace(stored, grades=with_outcomes(stored.grades, keys, outcomes))


def batch_of(
    stored: StoredBatch, plan: Plan, store: Store, *, finishing: bool = False, further: Iterable[str] = ()
) -> RecordBatch:
    """A stored batch as metrics and exporters see it.

    *further*: the endpoint's ``numbers``; one that was not stored is absent.
    *finishing*: answers of the run have a reason for their end; a whole stream with neither reason nor marker was cut.
    """
    numbers, errors, grades = stored.columns(), stored.errors, stored.grades
    if finishing and len(cut := stored.endless):
        for name, value in (("outcome", journal.ERROR), ("fault", CUT)):
            numbers[name] = numbers[name].copy()
            numbers[name][cut] = value
        errors = errors | dict.fromkeys(cut, _INCOMPLETE)
        grades = grades | {i: Graded(grades[i].expected, grades[i].task, ungraded=_NO_ANSWER) for i in cut if i in grades}
    columns: dict[str, Column] = dict(numbers)
    stamps, lengths = np.frombuffer(stored.stamps, dtype=np.int64), np.frombuffer(stored.lengths, dtype=np.int64)
    kinds = np.frombuffer(stored.kinds, dtype=np.uint8)
    columns |= instants(stamps, kinds, lengths, np.frombuffer(stored.since, dtype=np.int64))
    columns |= grade_columns(grades, stored.count)
    columns[REPEAT] = repeats(store, numbers["entry"], numbers["turn"])
    trees = TreeRows(numbers, store, plan) if store.trees else None
    columns |= {} if trees is None else trees.columns
    for name in dict.fromkeys((*stored.further, *further)):
        data = stored.further.get(name)
        columns[name] = np.full(stored.count, ABSENT) if data is None else np.frombuffer(data, dtype=np.float64)
    run_id, count = plan.run.run_id, stored.count
    def whole(name: str) -> list[int]:
        found: list[int] = numbers[name].astype(np.int64).tolist()
        return found

    texts: dict[str, Sequence[str | None] | Callable[[], Sequence[str | None]]] = {
        "conversation_id": lambda: store.ids(numbers["entry"].astype(np.int64)),
        "request_id": lambda: _numbered(partial(journal.request_prefix, run_id), whole("shard"), whole("request")),
        "session_id": lambda: _numbered(lambda phase: prefix_of(plan, phase), whole("phase"), whole("session")),
        "model": lambda: _named(plan.target.models.__getitem__, whole("model")),
        "url": lambda: _named(plan.target.urls.__getitem__, whole("url")),
        **_senders(plan.run.sites, numbers["shard"]),
        "error": _by_row(errors, count),
        "task": lambda: store.tasks(whole("entry"), whole("turn")),
        "finish_reason": lambda: decoded(stored.reasons, stored.reason_places) if stored.reasons else [None] * count,
    }
    if plan.plugins.grader is not None:
        texts["grade"] = _by_row({row: _text(grade) for row, grade in grades.items()}, count)
    if store.settings:
        texts["settings"] = lambda: settings(store, plan.target, whole("entry"), whole("turn"))
    if store.sourced:
        texts["source"] = lambda: sources(store, whole("entry"), whole("turn"))
    if plan.output.http_trace:
        texts["trace"] = _by_row(stored.traces, count)
    if stored.legs:
        texts["legs"] = _by_row(stored.legs, count)
    if stored.answers is not None:
        for place, name in enumerate(ANSWER_TEXTS):
            texts[name] = _by_row({row: both[place] for row, both in stored.answers.items()}, count)
    texts |= {} if trees is None else trees.texts
    texts |= {name: _by_row(stored.texts[name], count) for name in stored.texts if name not in texts}
    return RecordBatch(columns, numbers["outcome"] == journal.COMPLETED, BatchTexts(texts))


def _senders(sites: Sequence[str], shards: Floats) -> dict[str, Callable[[], Sequence[str]]]:
    """The texts of who sent the requests."""
    found: dict[str, Callable[[], Sequence[str]]] = {
        "worker": lambda: _named("worker-{}".format, shards.astype(np.int64).tolist())
    }
    if sites:
        found[SITE] = lambda: _named(lambda shard: sites[shard % len(sites)], shards.astype(np.int64).tolist())
    return found


def _named(name: Callable[[int], str], places: list[int]) -> list[str]:
    names = {place: name(place) for place in set(places)}
    return list(map(names.__getitem__, places))


def _numbered(prefix: Callable[[int], str], places: list[int], numbers: list[int]) -> list[str]:
    """Ids of requests or sessions: the prefix of a place (shard, phase), and a number."""
    forms = {place: f"{prefix(place)}%012x" for place in set(places)}
    if len(forms) == 1:
        return list(map(forms[places[0]].__mod__, numbers))
    return [forms[place] % number for place, number in zip(places, numbers, strict=True)]


def _by_row(texts: dict[int, str], count: int) -> list[str | None]:
    return [texts.get(row) for row in range(count)] if texts else [None] * count


def _text(value: ErrorDetails | Graded) -> str:
    return msgspec.json.encode(value).decode()
