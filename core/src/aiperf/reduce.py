"""Journal segments to columns to folded metrics.

A :class:`Reducer` follows the segments of its shards, keeps what each open request has so far, and turns finished requests
into batches.  A batch is first made durable as a frame of ``columns-<r>.<k>``, then scored, folded and handed to the batch
exporters.  A reducer that starts again feeds itself its own columns and goes on behind them, so that nothing is lost and
nothing counted twice.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import time
from array import array
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from aiperf import journal
from aiperf.answer import MARKED, Answer, Read, read_answer
from aiperf.artifacts import batch_exporters, part_path, target_for
from aiperf.build import load, open_tokenizer
from aiperf.columns import Column, Floats, Ints, Ragged, RecordBatch
from aiperf.endpoint import Endpoint
from aiperf.errors import ENDPOINT_ERROR, BadJournal, BadResponse
from aiperf.fold import Buckets
from aiperf.grading import Graded, Grading, grade_columns
from aiperf.grouped import CUT, EMPTY, FAILED, BySlice, ByUrl, Grouped, Grouping
from aiperf.hookcalls import implementations
from aiperf.ids import request_prefix, session_prefix
from aiperf.model import ErrorDetails, names
from aiperf.pipeline import Census, Pipeline, catalogue
from aiperf.plan import Plan
from aiperf.rundir import RunClock
from aiperf.store import Store
from aiperf.strangers import who, why
from aiperf.trace import traced
from aiperf.usage import Usage, read_usage

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger(__name__)

NUMBERS = (
    "n", "session", "turn", "entry", "phase", "due_ns", "held_ns", "started_ns", "connected_ns", "sent_ns", "sent_end_ns",
    "ack_ns", "first_byte_ns", "last_byte_ns", "ended_ns", "first_token_ns", "second_token_ns", "first_output_ns",
    "last_token_ns", "status", "outcome", "input_tokens", "output_tokens", "reasoning_tokens", "requested_tokens",
    "usage_prompt_tokens", "usage_completion_tokens", "usage_total_tokens", "usage_reasoning_tokens", "usage_cached_tokens",
    "usage_cache_write_tokens", "usage_cache_miss_tokens", "usage_prompt_audio_tokens", "usage_completion_audio_tokens",
    "usage_accepted_tokens", "usage_rejected_tokens", "usage_tool_tokens", "usage_audio_s",
    "bytes_sent", "bytes_received", "dns_ns", "connect_ns", "tls_ns", "reused", "reconnected", "coalesced", "shard", "request",
    "url", "model", "fault", "first_tokens", "reads", "images", "events", "first_event_ns", "last_event_ns",
)  # fmt: skip
"""Columns with one number per request, as a batch is stored."""

TEXTS = ("conversation_id", "request_id", "session_id", "model", "url", "worker", "error")

BATCH_REQUESTS = 2048
BATCH_CHUNKS = 1 << 18
_LIVE_BATCH_NS = 250_000_000
_STEP_NS = 100_000
_COLUMNS_BYTES = 64 << 20
_VERSION = 1
_ABSENT = float("nan")
_SENT, _DONE, _CHUNK = len(journal.SENT_FIELDS), len(journal.DONE_FIELDS), len(journal.CHUNK_FIELDS)
_pack = msgspec.msgpack.Encoder().encode


class Stored(Struct, frozen=True, omit_defaults=True):
    """A batch on disk.

    numbers: float64 of the columns *names*, one after the other.  stamps, kinds: per content piece, its instant (int64 ns
    since the run's start) and the bits of :mod:`aiperf.answer`; lengths: pieces per request.  errors: ErrorDetails as JSON,
    by row; traces: likewise :class:`aiperf.trace.Trace`, where the run keeps them; grades: of requests with something to grade.
    side: PHASE and LOOP frames seen since the batch before, as [shard, kind, value]; at: how
    far each shard had been read by then, as {shard: [segment, offset]}.  steps: clock steps since then.  lateness: reads' delay
    behind their kernel stamps; intervals: widths within which marked pieces came; both in ns.
    """

    count: int
    numbers: bytes
    stamps: bytes
    kinds: bytes
    lengths: bytes
    errors: dict[int, str] = {}
    traces: dict[int, str] = {}
    side: list[tuple[int, int, dict[str, Any]]] = []
    at: dict[int, tuple[int, int]] = {}
    steps: int = 0
    lateness: Buckets | None = None
    intervals: Buckets | None = None
    version: int = 1  # of this layout; _VERSION is the one that is written
    names: tuple[str, ...] = ()  # NUMBERS where empty
    grades: dict[int, Graded] = {}


class Folded(Struct, frozen=True):
    """A reducer's whole work, as ``folds-<r>``.  *off*: metrics that failed, with a sentence on each; *groups*: by slice, URL;
    *kept*: for analyses.

    notes: what the columns don't say.  lost: which of them are damaged, where requests are missing for it.
    """

    folds: list[tuple[int, str, bytes]]
    census: dict[int, Census]
    side: list[tuple[int, int, dict[str, Any]]]
    clock_steps: int
    lateness: Buckets
    intervals: Buckets
    failures: list[str] = []
    off: dict[str, str] = {}
    groups: list[Grouped] = []
    notes: list[str] = []
    lost: list[str] = []
    kept: list[tuple[int, str, bytes]] = []


class Live(Struct, frozen=True):
    """So far: requests reduced, failed ones, means in ms (None before the first)."""

    done: int
    errors: int
    ttft_ms: float | None
    itl_ms: float | None


class _Open:
    """A request that is not over."""

    __slots__ = ("error", "head", "prompt", "request", "segment", "sent")

    def __init__(self, sent: list[int], segment: int) -> None:
        self.sent = sent
        self.segment = segment
        self.error: dict[str, Any] | None = None
        self.head: dict[str, Any] | None = None
        self.prompt: str | None = None
        self.request: dict[str, Any] | None = None


class _Shard:
    """Where a shard's journal stands."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.segment = 0
        self.offset = 0
        self.clock: tuple[int, int] | None = None  # monotonic clock, and wall minus monotonic, at the flush before
        self.stepped = False  # between that flush and the one before it the wall clock was set
        self.open: dict[int, _Open] = {}
        self.reads: dict[int, list[Read]] = {}  # of the same requests
        self.rows = self.ever = 0  # requests that have a row, and how many there were as far as their numbers tell
        self.done = bytearray()  # by request: whether it is in the columns
        self.known = (0, 0)  # until here what isn't of a request is in the columns

    def is_done(self, request: int) -> bool:
        return request < len(self.done) and self.done[request] != 0

    def set_done(self, requests: Ints) -> None:
        self.rows += len(requests)
        self.ever = max(self.ever, int(requests.max()) + 1)
        self.done.extend(bytes(max(0, int(requests.max()) + 1 - len(self.done))))
        np.frombuffer(self.done, dtype=np.uint8)[requests] = 1


RARELY = (50_000, 20, 100)
"""Thresholds for the garbage collector of a process that reduces, whose default is 700.

A tuple is made per read and goes with its request: there is nothing to find, and looking took 7 % of the time.
"""


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Behind:
    """A file that is written in a thread, a piece behind: a report has a core to itself, and the disk is slow.

    What the disk refuses is raised by the next call.
    """

    def __init__(self, file: BinaryIO) -> None:
        from concurrent.futures import ThreadPoolExecutor  # 5 ms that a reducer beside the load needn't take

        self._file = file
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[int] | None = None

    def write(self, data: bytes) -> None:
        self._wait()
        self._writing = self._thread.submit(self._file.write, data)

    def close(self) -> None:
        try:
            self._wait()
        finally:
            self._thread.shutdown()
            self._file.close()

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


class Reducer:
    """Reduces the shards whose number modulo *of* is *index*.

    *durable* False keeps the journal as it is (a report over a directory): nothing is appended or deleted, and the columns
    of every reducer there was are read.
    """

    def __init__(self, plan: Plan, directory: Path, index: int, of: int, *, clock: RunClock, durable: bool = True) -> None:
        self.plan, self.journal, self.index = plan, directory, index
        self._zero_ns = clock.started_mono_ns
        self._durable = durable
        self._endpoint: Endpoint = load(plan.endpoint)(plan.plugin_options(plan.endpoint))
        capabilities = self._endpoint.capabilities
        self._count_output = capabilities.produces_tokens
        self._count_input = capabilities.tokenizes_input
        # A report of what is reduced already counts nothing, and may be made where the tokenizer can't be had.
        self._tokenizer = open_tokenizer(plan) if durable and not plan.use_server_token_count else None
        self._store = Store(directory)
        self._grading = Grading(plan, self._store, self._fail)
        self._pipeline = Pipeline(catalogue(plan, capabilities), directory, str(index), groupings(plan))
        self._exporters = batch_exporters(plan, target_for(plan, clock))
        opened = [part_path(directory, ref.name, index).open("wb") for ref, _ in self._exporters]
        self._parts: list[BinaryIO | _Behind] = [*opened] if durable else [_Behind(part) for part in opened]
        self._shards = [_Shard(number) for number in range(index, plan.workers, of)]
        self._by_number = {shard.number: shard for shard in self._shards}
        self._rows: list[tuple[float, ...]] = []
        self._stamps: list[int] = []
        self._kinds = bytearray()
        self._lengths: list[int] = []
        self._errors: dict[int, str] = {}
        self._traces: dict[int, str] = {}
        self._grades: dict[int, Graded] = {}
        self._side: list[tuple[int, int, dict[str, Any]]] = []
        self._steps = 0
        self._late: list[Ints] = []
        self._widths: list[int] = []
        self.lateness, self.intervals = Buckets(), Buckets()
        self._listeners = implementations(plan.hooked(), "aiperf_batch_reduced")
        self._failures: dict[str, str] = {}
        self._notes: list[str] = []
        self._damaged: list[str] = []
        self.side: list[tuple[int, int, dict[str, Any]]] = []
        """PHASE and LOOP frames seen, as (shard, kind, value)."""
        self.clock_steps = 0
        self._emitted_ns = time.monotonic_ns()
        self._file = -1
        self._file_number = self._file_bytes = 0
        self._done = self._failed = 0
        self._ttft_sum = self._itl_sum = 0.0
        self._ttft_count = self._itl_count = 0
        self._recover()

    # Following

    def step(self, budget_s: float) -> bool:
        """Read what is new, for about *budget_s*; True if there was something."""
        until = time.monotonic_ns() + round(budget_s * 1e9)
        found = False
        for shard in self._shards:
            found |= self._follow(shard, until)
        if self._rows and time.monotonic_ns() - self._emitted_ns > _LIVE_BATCH_NS:
            self._emit()
        return found

    def finish(self) -> None:
        """Read to the end, close what is still open as unfinished, and write the folds."""
        while self.step(3600.0):
            pass
        for shard in self._shards:
            for request, entry in list(shard.open.items()):
                self._over(shard, entry, shard.reads[request], [request, journal.UNFINISHED, *[0] * (_DONE - 2)])
                del shard.open[request], shard.reads[request]
                self._emit_full()
        self._emit()
        for part in self._parts:
            part.close()
        folded = Folded(
            self._pipeline.dump(),
            self._pipeline.census,
            self.side,
            self.clock_steps,
            self.lateness,
            self.intervals,
            list(self._failures.values()),
            self._pipeline.off,
            self._pipeline.dump_groups(),
            self._notes,
            self._lost(),
            self._pipeline.dump_kept(),
        )
        draft = self.journal / f"folds-{self.index}.draft"
        draft.write_bytes(_pack(folded))
        draft.replace(self.journal / f"folds-{self.index}")
        if self._file >= 0:
            os.fdatasync(self._file)
            os.close(self._file)
            self._file = -1
        if self._durable and not self._keeps_segments:
            for shard in self._shards:
                for path in journal.numbered(self.journal, f"shard-{shard.number}.*.seg"):
                    path.unlink()

    def live(self) -> Live:
        """Means so far."""
        return Live(
            self._done,
            self._failed,
            self._ttft_sum / self._ttft_count / 1e6 if self._ttft_count else None,
            self._itl_sum / self._itl_count / 1e6 if self._itl_count else None,
        )

    def _follow(self, shard: _Shard, until: int) -> bool:
        found = False
        while True:
            path = journal.segment_path(self.journal, shard.number, shard.segment)
            after = journal.segment_path(self.journal, shard.number, shard.segment + 1)
            rolled = after.exists()
            if path.exists():
                for frame in journal.frames(path, shard.offset):
                    self._frame(shard, frame)
                    shard.offset = frame.end
                    found = True
                    if time.monotonic_ns() > until:
                        return True
            elif not rolled:
                return found
            if not rolled:
                return found
            shard.segment, shard.offset = shard.segment + 1, 0

    def _frame(self, shard: _Shard, frame: journal.Frame) -> None:
        self._clock(shard, frame)
        kind = frame.kind
        if kind == journal.CHUNKS:
            self._chunks(shard, frame)
        elif kind == journal.SENT:
            rows = array("q", frame.payload).tolist()
            for i in range(0, len(rows), _SENT):
                if not shard.is_done(rows[i]):
                    shard.open[rows[i]] = _Open(rows[i : i + _SENT], shard.segment)
                    shard.reads[rows[i]] = []
        elif kind == journal.DONE:
            rows = array("q", frame.payload).tolist()
            for i in range(0, len(rows), _DONE):
                entry = shard.open.pop(rows[i], None)
                if entry is not None:
                    self._over(shard, entry, shard.reads.pop(rows[i]), rows[i : i + _DONE])
                    self._emit_full()
        elif kind == journal.TEXT:
            for request, what, value in msgspec.msgpack.decode(frame.payload):
                entry = shard.open.get(request)
                if entry is not None:
                    setattr(entry, what, value)
        elif kind in (journal.PHASE, journal.LOOP) and (shard.segment, frame.end) > shard.known:
            value = msgspec.msgpack.decode(frame.payload)
            self._side.append((shard.number, kind, value))
            self._aside(self._side[-1:])

    def _aside(self, said: list[tuple[int, int, dict[str, Any]]]) -> None:
        """Take what isn't of a request."""
        self.side += said
        for _, kind, value in said:
            if kind == journal.PHASE and value["event"] == "begin":  # at one instant for all shards
                self._pipeline.begins_ns.setdefault(value["phase"], value["at_ns"] - self._zero_ns)

    def _clock(self, shard: _Shard, frame: journal.Frame) -> None:
        """Notice that the wall clock was set; the frames of one flush carry one reading of the clocks."""
        offset = frame.wall_ns - frame.mono_ns
        if shard.clock is not None:
            before_ns, before = shard.clock
            if before_ns == frame.mono_ns:
                return
            shard.stepped = abs(offset - before) > _STEP_NS
            if shard.stepped and (shard.segment, frame.end) > shard.known:
                self._steps += 1
                self.clock_steps += 1
        shard.clock = frame.mono_ns, offset

    def _chunks(self, shard: _Shard, frame: journal.Frame) -> None:
        """Reads to their requests; kernel stamps to the run's clock."""
        count = frame.count
        rows = np.frombuffer(frame.payload, dtype=np.int64, count=count * _CHUNK).reshape(count, _CHUNK).T
        requests, kernel, seen, sizes, hidden = rows
        reads = seen - self._zero_ns
        # Where the wall clock was set since the flush before, its stamps can't be placed; those of the reads can.
        placed = np.zeros(count, dtype=bool) if shard.stepped else kernel > 0
        stamps = np.where(placed, kernel - (frame.wall_ns - frame.mono_ns) - self._zero_ns, reads)
        if (shard.segment, frame.end) > shard.known:
            self._late.append((reads - stamps)[placed])
        payload, begin = frame.payload, count * _CHUNK * 8
        ends = (np.cumsum(sizes) + begin).tolist()
        bodies = [payload[i:j] for i, j in zip([begin, *ends], ends, strict=False)]
        stray: list[Read] = []  # of requests that are in the columns already
        taken = map(shard.reads.get, requests.tolist(), repeat(stray))
        each = zip(stamps.tolist(), reads.tolist(), hidden.tolist(), bodies, strict=True)
        deque(map(list.append, taken, each), maxlen=0)  # half of what a loop takes

    # One request

    def _over(self, shard: _Shard, entry: _Open, reads: list[Read], done: list[int]) -> None:
        """A finished request becomes a row."""
        _, outcome, status, flags, connected, sent, sent_end, ack, ended, sent_bytes, received, dns, connect, tls = done
        request, n, phase, session, turn, entry_number, url, model, due, started, held = entry.sent
        shard.rows += 1
        shard.ever = max(shard.ever, request + 1)
        zero = self._zero_ns
        error: ErrorDetails | None = None
        # What came of an answer that was cut short is observed, too, and the segment with it will be gone.
        if reads and (outcome == journal.UNFINISHED or 200 <= status < 300):
            streamed = bool(flags & journal.STREAMED) or (outcome == journal.UNFINISHED and self.plan.streaming)
            answer = read_answer(
                reads, self._endpoint.decode, streamed=streamed, repeats=self._endpoint.repeats_envelope
            )
            if answer.error is not None and answer.error.kind == ENDPOINT_ERROR:
                self._fail(who(self.plan.endpoint), answer.error.message)
        else:
            answer = Answer()
        if outcome == journal.COMPLETED:
            error = _verdict(answer)
        elif outcome in (journal.ERROR, journal.CANCELLED):
            error = _failure(entry, reads, status)
            if error.type == ENDPOINT_ERROR:
                self._fail(who(self.plan.endpoint), error.message)
        if error is not None and outcome == journal.COMPLETED:
            outcome = journal.ERROR
        usage = read_usage(answer.usage) if answer.usage else _NO_USAGE
        inputs, outputs, reasoning = self._tokens(entry, answer, usage)
        stamps = answer.stamps
        last_byte = reads[-1][0] if reads else None
        if outcome == journal.COMPLETED and last_byte is not None:
            end: int | None = last_byte
        else:
            end = ended - zero if ended else last_byte
        first = stamps[0] if stamps else None
        requested = self._store.max_tokens(entry_number, turn)
        self._rows.append((
            n, session, turn, entry_number, phase, due - zero if due >= 0 else _ABSENT, held if due >= 0 else _ABSENT,
            started - zero, connected - zero if connected else _ABSENT, sent - zero if sent else _ABSENT,
            sent_end - zero if sent_end else _ABSENT, _acknowledged(ack - zero, reads) if ack else _ABSENT,
            reads[0][0] if reads else _ABSENT, _ABSENT if last_byte is None else last_byte, _ABSENT if end is None else end,
            _ABSENT if first is None else first, _second(answer), _known(answer.first_output_ns),
            stamps[-1] if stamps else _ABSENT, status if status else _ABSENT, outcome, _known(inputs), _known(outputs),
            _known(reasoning), requested if requested >= 0 else _ABSENT, *map(_known, astuple(usage)), sent_bytes,
            received, dns, connect, tls,
            1.0 if flags & journal.REUSED else 0.0, 1.0 if flags & journal.RECONNECTED else 0.0, answer.marked,
            shard.number, request, url, model, _fault(done[1], status, answer, error), self._first_tokens(answer),
            len(reads), self._store.images(entry_number, turn), answer.events, _known(answer.first_event_ns),
            _known(answer.last_event_ns),
        ))  # fmt: skip
        if error is not None:
            self._errors[len(self._rows) - 1] = msgspec.json.encode(error).decode()
        if self.plan.http_trace:
            self._traces[len(self._rows) - 1] = traced(entry.request, entry.head, [(read[0], len(read[3])) for read in reads])
        missing = None if outcome == journal.COMPLETED else f"no answer: {journal.OUTCOMES[outcome]}"
        graded = self._grading.of(entry_number, turn, answer, missing)
        if graded is not None:
            self._grades[len(self._rows) - 1] = graded
        self._widths += answer.intervals
        self._stamps += stamps
        self._kinds += answer.kinds
        self._lengths.append(len(stamps))
        self._count(outcome, started - zero, stamps, outputs, reasoning)

    def _count(self, outcome: int, started: int, stamps: list[int], outputs: int | None, reasoning: int | None) -> None:
        self._done += 1
        if outcome != journal.COMPLETED:
            self._failed += outcome == journal.ERROR
            return
        if self.plan.streaming and stamps:
            self._ttft_sum += stamps[0] - started
            self._ttft_count += 1
            tokens = (outputs or 0) + (reasoning or 0)
            if tokens > 1 and stamps[-1] > stamps[0]:
                self._itl_sum += (stamps[-1] - stamps[0]) / (tokens - 1)
                self._itl_count += 1

    def _tokens(self, entry: _Open, answer: Answer, usage: Usage) -> tuple[int | None, int | None, int | None]:
        """Input, output and reasoning tokens."""
        if self.plan.use_server_token_count:
            output = usage.completion
            if output is not None:
                output = max(0, output - (usage.reasoning or 0))
            return usage.prompt, output, usage.reasoning
        inputs = outputs = reasoning = None
        if self._tokenizer is None:
            self._tokenizer = open_tokenizer(self.plan)
        tokenizer = self._tokenizer
        if tokenizer is None or self.plan.tokenizer is None:
            return None, None, None
        try:
            if self._count_input:
                if entry.prompt is not None:
                    inputs = tokenizer.count(entry.prompt)
                else:
                    known = self._store.input_tokens(entry.sent[5], entry.sent[4])
                    inputs = known if known >= 0 else None
            if self._count_output:
                outputs = tokenizer.count(answer.text) if answer.text else None
                reasoning = tokenizer.count(answer.reasoning) if answer.reasoning else None
        except Exception as error:  # noqa: BLE001  # strangers' code
            self._fail(who(self.plan.tokenizer), why(error), error)
            return None, None, None
        return inputs, outputs, reasoning

    def _first_tokens(self, answer: Answer) -> float:
        """Tokens that came with the first content, as the server counts; absent where it doesn't, or isn't asked."""
        if not self.plan.use_server_token_count or answer.first_usage is None:
            return _ABSENT
        return _known(read_usage(answer.first_usage).completion)

    # Batches

    def _emit_full(self) -> None:
        if len(self._rows) >= BATCH_REQUESTS or len(self._stamps) >= BATCH_CHUNKS:
            self._emit()

    def _emit(self) -> None:
        """Make what is finished durable, then score, fold and export it."""
        self._emitted_ns = time.monotonic_ns()
        if not self._rows and not self._side:
            return
        numbers = np.array(self._rows, dtype=np.float64).reshape(len(self._rows), len(NUMBERS)).T
        lateness, intervals = Buckets(), Buckets()
        lateness.add(np.concatenate([np.empty(0), *self._late]))
        intervals.add(np.array(self._widths, dtype=np.float64))
        stored = Stored(
            len(self._rows), np.ascontiguousarray(numbers).tobytes(), np.array(self._stamps, dtype=np.int64).tobytes(),
            bytes(self._kinds), np.array(self._lengths, dtype=np.int64).tobytes(), self._errors, self._traces, self._side,
            {shard.number: (shard.segment, shard.offset) for shard in self._shards}, self._steps,
            lateness, intervals, _VERSION, NUMBERS, self._grades,
        )  # fmt: skip
        if self._durable:
            self._append(stored)
        self._rows, self._stamps, self._kinds, self._lengths = [], [], bytearray(), []
        self.lateness.merge(lateness)
        self.intervals.merge(intervals)
        self._errors, self._traces, self._grades, self._side = {}, {}, {}, []
        self._steps, self._late, self._widths = 0, [], []
        if stored.count:
            self._feed(batch_of(stored, self.plan, self._store))
        if self._durable:
            self._drop_segments()

    def _feed(self, batch: RecordBatch) -> None:
        scored = self._pipeline.score(batch)
        self._pipeline.feed(scored)
        for (ref, exporter), part in zip(self._exporters, self._parts, strict=True):
            try:
                part.write(exporter.rows(scored))
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._fail(who(ref), why(error), error)
        for name, listener in self._listeners:
            try:
                listener(batch=batch)
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._fail(f"hook plugin {name}: aiperf_batch_reduced", why(error), error)

    def _fail(self, whose: str, what: str, error: Exception | None = None) -> None:
        """Report a stranger's first failure."""
        if whose not in self._failures:
            self._failures[whose] = f"{whose} failed: {what}"
            log.warning("%s", self._failures[whose], exc_info=error)

    def _append(self, stored: Stored) -> None:
        if self._file >= 0 and self._file_bytes > _COLUMNS_BYTES:
            os.fdatasync(self._file)
            os.close(self._file)
            self._file, self._file_bytes, self._file_number = -1, 0, self._file_number + 1
        if self._file < 0:
            path = journal.columns_path(self.journal, self.index, self._file_number)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        data = journal.pack(journal.COLUMNS, _pack(stored), time.monotonic_ns(), time.time_ns(), stored.count)
        journal.write_all(self._file, data)
        self._file_bytes += len(data)

    def _drop_segments(self) -> None:
        """Delete segments behind which every request is in the columns."""
        if self._keeps_segments:
            return
        for shard in self._shards:
            oldest = min((entry.segment for entry in shard.open.values()), default=shard.segment)
            for path in journal.numbered(self.journal, f"shard-{shard.number}.*.seg"):
                if int(path.name.split(".")[1]) >= min(oldest, shard.segment):
                    break
                path.unlink()

    @property
    def _keeps_segments(self) -> bool:
        """Where a plugin failed, its author will want to see on what."""
        return self.plan.export_level == "raw" or bool(self._failures or self._pipeline.off)

    def _recover(self) -> None:
        """Feed what earlier reducers made durable; go on behind it."""
        pattern = f"columns-{self.index}.*" if self._durable else "columns-*.*"
        for path in [] if self._rather_raw() else journal.numbered(self.journal, pattern):
            whole = 0
            for frame in journal.frames(path):
                stored = _stored(path, frame.payload)
                whole = frame.end
                self._remember(stored)
                if stored.count:
                    self._feed(batch_of(stored, self.plan, self._store))
            if self._durable:
                os.truncate(path, whole)  # a frame that kill -9 cut
                self._file_number = int(path.name.split(".")[1])
                self._file_bytes = whole
            elif damaged := path.stat().st_size - whole:
                self._damaged.append(f"the last {damaged:,} bytes of {path.name} are damaged")
        for shard in self._shards:
            first = journal.numbered(self.journal, f"shard-{shard.number}.*.seg")
            if first:
                shard.segment = int(first[0].name.split(".")[1])

    def _lost(self) -> list[str]:
        """The damage for which requests are missing; what a killed reducer left half written is in the segments, too."""
        gaps = any(shard.rows < shard.ever for shard in self._shards)
        return self._damaged if gaps or not journal.numbered(self.journal, "shard-*.seg") else []

    def _rather_raw(self) -> bool:
        """Whether a report reads the segments again, because the columns of another version lack something that they have.

        Where the segments are gone it says what there is no knowing of.
        """
        first = next(iter(journal.numbered(self.journal, "columns-*.*")), None)
        frame = None if first is None or self._durable else next(iter(journal.frames(first)), None)
        if first is None or frame is None:
            return False
        lacking = [name for name in NUMBERS if name not in (_stored(first, frame.payload).names or NUMBERS)]
        if not lacking:
            return False
        if self.plan.export_level == "raw" and all(
            journal.segment_path(self.journal, shard.number, 0).exists() for shard in self._shards
        ):
            return True
        self._notes.append(
            f"{names(lacking)} can't be computed again, nor what needs it: version {self.plan.version} kept no such column, and"
            " the answers themselves are gone (--export-level raw keeps them)"
        )
        return False

    def _remember(self, stored: Stored) -> None:
        numbers = _numbers(stored)
        shards, requests = numbers["shard"].astype(np.int64), numbers["request"].astype(np.int64)
        for shard in np.unique(shards).tolist():
            self._by_number[shard].set_done(requests[shards == shard])
        for number, at in stored.at.items():
            shard_read = self._by_number[number]
            shard_read.known = max(shard_read.known, at)
        self._aside(stored.side)
        self.clock_steps += stored.steps
        for mine, theirs in ((self.lateness, stored.lateness), (self.intervals, stored.intervals)):
            if theirs is not None:
                mine.merge(theirs)
        self._done += stored.count
        self._failed += int((numbers["outcome"] == journal.ERROR).sum())


def _stored(path: Path, payload: bytes) -> Stored:
    """A frame of columns.

    Raises:
        BadJournal: Another version of this program wrote it.
    """
    try:
        stored = msgspec.msgpack.decode(payload, type=Stored)
    except msgspec.MsgspecError as error:
        raise BadJournal(f"{path} can't be read: {error}", "report it with the version that made the run") from error
    if stored.version != _VERSION or len(stored.numbers) != stored.count * len(stored.names or NUMBERS) * 8:
        raise BadJournal(
            f"{path} has columns of version {stored.version}, and not {_VERSION} as this program",
            "report it with the version that made the run",
        )
    return stored


def groupings(plan: Plan) -> dict[int, list[Grouping]]:
    """How the requests of each profiling phase are folded apart besides."""
    wanted: list[Grouping] = []
    if plan.slice_ns is not None:
        wanted.append(BySlice(plan.slice_ns))
    if len(plan.urls) > 1:
        wanted.append(ByUrl())
    return {phase.index: wanted for phase in plan.phases if phase.kind == "profiling"} if wanted else {}


_NO_USAGE = Usage()


def _known(value: float | None) -> float:
    return _ABSENT if value is None else value


def _acknowledged(ack: int, reads: list[Read]) -> int:
    """When the head was in: read stamps are ours and later than the kernel's stamp of the body that came behind it."""
    return min(ack, reads[0][0]) if reads else ack


def _second(answer: Answer) -> float:
    """The second distinct instant; absent where content was merged into either, for then it isn't known."""
    first = answer.stamps[0] if answer.stamps else 0
    for i, stamp in enumerate(answer.stamps):
        if stamp != first:
            merged = answer.marked and any(kind & MARKED for kind in answer.kinds[: i + answer.stamps.count(stamp)])
            return _ABSENT if merged else stamp
    return _ABSENT


def _verdict(answer: Answer) -> ErrorDetails | None:
    """Why an answer with a good status is an error; None if it is one to count."""
    if answer.error is not None:
        return _details(answer.error)
    if not answer.stamps:
        return ErrorDetails("the answer has no content", type="InvalidInferenceResultError")
    return None


def _fault(outcome: int, status: int, answer: Answer, error: ErrorDetails | None) -> float:
    """How a request failed; absent where it didn't.  *outcome* is the transport's."""
    if error is None or outcome == journal.CANCELLED:
        return _ABSENT
    if outcome == journal.COMPLETED:
        return EMPTY if answer.error is None else FAILED
    return CUT if 200 <= status < 300 else FAILED


def _details(error: BadResponse) -> ErrorDetails:
    return ErrorDetails(error.message, type=error.kind or "InvalidInferenceResultError", code=error.code)


def _failure(entry: _Open, reads: list[Read], status: int) -> ErrorDetails:
    """What a failed request says of itself: the transport's error, else the status with the body."""
    if entry.error is not None:
        return msgspec.convert(entry.error, ErrorDetails)
    body = b"".join(read[3] for read in reads).decode("utf-8", "replace")
    reason = entry.head["reason"] if entry.head is not None else f"HTTP {status}"
    return ErrorDetails(body, type=reason, code=status or None)


def batches(directory: Path, plan: Plan) -> Iterator[RecordBatch]:
    """What a journal's columns hold, batch by batch."""
    store = Store(directory)
    for path in journal.numbered(directory, "columns-*.*"):
        for frame in journal.frames(path):
            stored = _stored(path, frame.payload)
            if stored.count:
                yield batch_of(stored, plan, store)


def _numbers(stored: Stored) -> dict[str, Floats]:
    kept = stored.names or NUMBERS
    known = dict(zip(kept, np.frombuffer(stored.numbers, dtype=np.float64).reshape(len(kept), stored.count), strict=True))
    absent = np.full(stored.count, _ABSENT)
    return {name: known.get(name, absent) for name in NUMBERS}


def batch_of(stored: Stored, plan: Plan, store: Store) -> RecordBatch:
    """A stored batch as metrics and exporters see it."""
    columns: dict[str, Column] = dict(_numbers(stored))
    numbers = _numbers(stored)
    lengths = np.frombuffer(stored.lengths, dtype=np.int64)
    stamps, marks = np.frombuffer(stored.stamps, dtype=np.int64), np.frombuffer(stored.kinds, dtype=np.uint8)
    columns["chunk_ns"], columns["gap_ns"], columns["piece_count"] = _instants(stamps, marks, lengths)
    columns |= grade_columns(stored.grades, stored.count)
    valid = numbers["outcome"] == journal.COMPLETED
    entries, models, urls, shards, requests, phases, sessions = (
        numbers[name].astype(np.int64).tolist() for name in ("entry", "model", "url", "shard", "request", "phase", "session")
    )
    request_heads = {shard: request_prefix(plan.run_id, shard) for shard in set(shards)}
    session_heads = {phase: session_prefix(plan.run_id, phase) for phase in set(phases)}
    ids = {entry: store.id(entry) for entry in set(entries)}
    errors: list[str | None] = [None] * stored.count
    for row, error in stored.errors.items():
        errors[row] = error
    texts = {
        "conversation_id": [ids[entry] for entry in entries],
        "request_id": [f"{request_heads[shard]}{request:012x}" for shard, request in zip(shards, requests, strict=True)],
        "session_id": [f"{session_heads[phase]}{session:012x}" for phase, session in zip(phases, sessions, strict=True)],
        "model": [plan.models[model] for model in models],
        "url": [plan.urls[url] for url in urls],
        "worker": [f"worker-{shard}" for shard in shards],
        "error": errors,
    }
    if plan.grader is not None:
        grades = {row: msgspec.json.encode(each).decode() for row, each in stored.grades.items()}
        texts["grade"] = [grades.get(row) for row in range(stored.count)]
    if plan.http_trace:
        texts["trace"] = [stored.traces.get(row) for row in range(stored.count)]
    return RecordBatch(columns, valid, texts)


def _instants(stamps: Any, kinds: Any, lengths: Any) -> tuple[Ragged, Ragged, Ragged]:
    """Distinct instants per request, the gaps between neighbours that are both known, and the pieces at each instant."""
    count = len(lengths)
    owner = np.repeat(np.arange(count), lengths)
    empty = np.empty(0)
    if not len(stamps):
        offsets = np.zeros(count + 1, dtype=np.int64)
        nothing = Ragged(empty, offsets, empty)
        return nothing, nothing, nothing
    new = np.empty(len(stamps), dtype=bool)
    new[0] = True
    new[1:] = (owner[1:] != owner[:-1]) | (stamps[1:] != stamps[:-1])
    starts = np.flatnonzero(new)
    marked = np.maximum.reduceat((kinds & MARKED).astype(np.int64), starts) > 0
    at, whose = stamps[starts].astype(np.float64), owner[starts]
    instants = Ragged(at, _offsets(whose, count), at)
    same = np.empty(len(starts), dtype=bool)
    same[0] = False
    # What was merged into a read came somewhere since the read before: the gap that ends here is nobody's.
    same[1:] = (whose[1:] == whose[:-1]) & ~marked[1:]
    ends = np.flatnonzero(same)
    gaps = Ragged(at[ends] - at[ends - 1], _offsets(whose[ends], count), at[ends])
    pieces = np.diff(starts, append=len(stamps)).astype(np.float64)
    return instants, gaps, Ragged(pieces, instants.offsets, at)


def _offsets(owners: Any, count: int) -> Any:
    return np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int64)
