"""Journal segments to columns to folded metrics.

A :class:`ShardReducer` follows the segments of its shards and turns finished requests into batches.  A batch is first made
durable as a frame of ``columns-<r>.<k>``, then scored, folded and handed to exporters and hooks.  A reducer that starts again
reads its own columns and goes on behind them: no request is lost, and none is counted twice.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.parts.loading import load
from aiperf.parts.segments import JournalRequest, ShardEvent, ShardReader
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.plan import Plan
from aiperf.sdk.redaction import private
from aiperf.sdk.summary import UngradedAnswer
from msgspec import Struct

from aiperf_reducer_columns.reduce.aside import Aside, Left, Turns, Written
from aiperf_reducer_columns.reduce.batches import REST, ColumnsWriter, OpenBatch, StoredBatch, batch_of, read_batches
from aiperf_reducer_columns.reduce.grading import waiting
from aiperf_reducer_columns.reduce.late_rows import LateRows
from aiperf_reducer_columns.reduce.losses import lost_columns, lost_frames
from aiperf_reducer_columns.reduce.outlets import Outlets
from aiperf_reducer_columns.reduce.recent import Recent
from aiperf_reducer_columns.reduce.recovery import drop_segments, prefers_segments, skip_stored
from aiperf_reducer_columns.reduce.regrading import regraded, segments_are_whole
from aiperf_reducer_columns.reduce.rows import RowMaker
from aiperf_reducer_columns.reduce.site_clocks import correct_columns, corrected
from aiperf_reducer_columns.reduce.ungraded import with_ungraded
from aiperf_reducer_columns.reduce.watch import Watch
from aiperf_reducer_columns.statistics.by_text import ByText, texts_of
from aiperf_reducer_columns.statistics.catalogue import Catalogue, catalogue
from aiperf_reducer_columns.statistics.fold import Buckets, Samples
from aiperf_reducer_columns.statistics.grouped import BySlice, ByUrl, Grouped, Grouping
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_reducer_columns.statistics.plugin_folds import FoldState

if TYPE_CHECKING:
    from aiperf_reducer_columns.reduce.slow_grading import SlowGrading

log = logging.getLogger("aiperf.reducer")

_LIVE_BATCH_NS = 250_000_000
_GROUP, _GROUP_BYTES = 1024, 2 << 20
"""Requests, and body bytes, that become rows together."""

RARELY = (50_000, 20, 100)
"""Thresholds for the garbage collector of a process that reduces, whose default is 700.

Every read is a tuple that goes with its request.  None of them is garbage, and the search for it took 7 % of the time.
"""


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Reduction(Struct):
    """What a reducer leaves for the summary: in memory, and as ``folds-<r>`` where several reducers are merged.

    folds: (phase, tag, values).  counts: by phase.  events: PHASE, LOOP and NODES frames.  failures: on plugins that failed.
    off: metrics that failed, with a sentence on each.  groups: by slice, URL and text.  notes: what the columns lack.
    lost: damage that took something of a request.  missing: requests that are in no file.  raw_values: (phase, tag, state) of
    the values that are kept for analyses.  plugin_folds: of metrics that have their own.  finishing: answers have a reason for
    their end; endless: good answers that were counted before that was known, and may have been cut.  pending: answers that wait
    for a slow grader.  models: as those of a StoredBatch.  ungraded: as in the summary.  again: stored columns were not used.
    """

    folds: list[tuple[int, str, Samples]] = []
    counts: dict[int, PhaseCounts] = {}
    events: list[ShardEvent] = []
    clock_steps: int = 0
    lateness: Buckets = msgspec.field(default_factory=Buckets)
    intervals: Buckets = msgspec.field(default_factory=Buckets)
    first_intervals: Buckets = msgspec.field(default_factory=Buckets)
    failures: list[str] = []
    off: dict[str, str] = {}
    groups: list[Grouped] = []
    notes: list[str] = []
    lost: list[str] = []
    missing: int = 0
    finishing: bool = False
    endless: int = 0
    raw_values: list[tuple[int, str, bytes]] = []
    plugin_folds: list[FoldState] = []
    pending: int = 0
    models: list[tuple[str, str]] = []
    ungraded: list[UngradedAnswer] = []
    again: bool = False

    def add(self, stored: StoredBatch) -> None:
        """Count what a batch has beside its columns."""
        self.events += stored.events
        self.models += stored.models
        self.clock_steps += stored.steps
        for total, part in (
            (self.lateness, stored.lateness), (self.intervals, stored.intervals),
            (self.first_intervals, stored.first_intervals),
        ):  # fmt: skip
            if part is not None:
                total.merge(part)
        if stored.count:
            self.finishing = self.finishing or stored.has_finish
            self.endless += 0 if self.finishing else len(stored.endless)

    def save(self, journal: Path, reducer: int) -> None:
        draft = journal / f"folds-{reducer}.draft"
        private(draft).write_bytes(msgspec.msgpack.encode(self, enc_hook=Samples.dump))
        draft.replace(journal / f"folds-{reducer}")


def saved_reductions(journal: Path) -> list[Reduction]:
    """The saved reductions of all reducers, in their order."""
    paths = sorted(journal.glob("folds-[0-9]*"), key=lambda path: int(path.name.rpartition("-")[2]))
    decoder = msgspec.msgpack.Decoder(Reduction, dec_hook=lambda _, state: Samples.load(state))
    return [decoder.decode(path.read_bytes()) for path in paths]


class ShardReducer:
    """Reduces the shards whose number modulo *of* is *index*.

    *durable* False leaves the journal as it is (a report over a directory): nothing is appended or deleted, the columns of
    every reducer are read, and those of further requests go to the folder REST.  *finishing*: it is known that answers of the
    run have a reason for their end.
    *lines_s*: seconds between lines of progress, by the index of the phase; None where nobody looks at live numbers.
    *looked*: whether anything but these lines shows them.
    *slow*: grades what a slow grader has yet to grade; None leaves it ungraded, and counts it.  *tell*: gets each batch, beside
    the exporters.
    """
    # Larger than 250 lines: each method hands on to one of the objects below.
    # More than 20 attributes: it joins readers, rows, columns, metrics and files, each of which is one object.

    def __init__(
        self, plan: Plan, directory: Path, index: int, of: int, *, clock: journal.RunClock, durable: bool = True,
        finishing: bool = False, slow: SlowGrading | None = None, secret_texts: Sequence[str] = (),
        tell: Callable[[RecordBatch], None] | None = None, lines_s: Mapping[int, float] | None = None, looked: bool = True,
    ) -> None:  # fmt: skip
        self.plan, self.journal, self.index = plan, directory, index
        self._clock, self._zero_ns, self._durable = clock, clock.started_mono_ns, durable
        self._store = Store(directory)
        self._failures: dict[str, str] = {}
        self._outlets = Outlets(plan, directory, index, self._report, clock=clock, background=not durable)
        # A report of columns alone counts no tokens, and may be made where the tokenizer is missing.
        self._rows = RowMaker(
            plan, self._store, self._report, zero_ns=clock.started_mono_ns, counting=durable, secret_texts=secret_texts,
            singly=self._outlets.answers,
        )  # fmt: skip
        self.live = self._rows.live
        known = catalogue(plan, load(plan.plugins.endpoint))
        self.watch = None if lines_s is None else Watch(known, plan, index, lines_s, looked=looked, place=str(directory))
        self._pipeline = Pipeline(known, directory, str(index), groupings(plan, known), self.watch)
        shards, zero_ns = range(index, plan.run.workers, of), clock.started_mono_ns
        self._readers = {i: ShardReader(directory, i, zero_ns, clock.ahead_of(i)) for i in shards}
        written = directory if durable else directory / REST
        written.mkdir(mode=0o700, exist_ok=True)
        self._writer, self._batch = ColumnsWriter(written, index), self._new_batch()
        self._emitted_ns, self._slow, self._tell = time.monotonic_ns(), slow, tell
        self._give: Callable[[StoredBatch], None] = self._keep
        self._aside: Aside | None = None
        self._late = LateRows(self._outlets, directory, index, lambda batch: self._pipeline.score(self._record_batch(batch)))
        self.reduction = Reduction(finishing=finishing)
        if self.watch is not None:
            self.watch.follow(self._pipeline.counts, self._pipeline.begins_ns, self.reduction.lateness)
        self.recent: Recent | None = None
        """The latest requests; None in a report."""
        self._recover()
        self.recent = Recent(plan) if durable else None  # what an earlier reducer has stored it has told as well

    def step(self, budget_s: float) -> bool:
        """Reduce what is new, for about *budget_s*; True if there was something."""
        if self._aside is not None:
            return self._take_aside(self._aside)
        until_ns = time.monotonic_ns() + round(budget_s * 1e9)
        moved = False
        for shard, reader in self._readers.items():
            before = reader.position
            self._finish_requests(reader.finished(until_ns), shard)
            moved |= reader.position != before
        if len(self._batch) and time.monotonic_ns() - self._emitted_ns > _LIVE_BATCH_NS:
            self.emit()
        return moved

    @property
    def unread(self) -> int:
        """Bytes of the journal that are not read yet."""
        return sum(reader.unread for reader in self._readers.values())

    def put_off_rows(self) -> None:
        """From now on the rows of batches wait for :meth:`write_rows`: a person sees the summary first."""
        self.emit()
        self._late.put_off(self._writer.position)

    @property
    def rows_wait(self) -> bool:
        return self._late.wait

    def read_aside(self, end: journal.RunEnd | None, warned: Callable[[], Iterable[str]] = tuple) -> None:
        """Let a second process read the rest, up to the end of a run that has ended, and then write rows that are put off.

        *end*: as that of :meth:`finish`.  *warned*: asked there, and told by :attr:`warned_aside`.
        """

        known = self._failures

        def read(give: Callable[[StoredBatch], None]) -> Left:
            self._give, self._failures = give, {}
            while self.step(3600.0):
                pass
            return msgspec.structs.replace(self._read_rest(end), warned=[*warned()])

        def write(finishing: bool, turns: Turns) -> Written:
            self.reduction.finishing, self._failures = finishing, {**known, **self._failures}
            self._late.write(turns)
            return Written(self._failures, self._pipeline.off, [*warned()])

        self.emit()
        self._aside = Aside(read, write)

    def write_rows(self) -> list[str]:
        """Write the rows that were put off; a sentence on each plugin that failed only there.

        Raises:
            OSError: The disk is full.
        """
        known = {*self._failures, *self._pipeline.off}
        written = self._late.write_shared(self._aside)
        failures = {**written.failures, **written.off, **self._failures, **self._pipeline.off}
        return [sentence for name, sentence in failures.items() if name not in known]

    @property
    def warned_aside(self) -> list[str]:
        return [] if self._aside is None else self._aside.warned

    def _take_aside(self, aside: Aside) -> bool:
        stored = aside.take()
        if stored is not None:
            self.live.done += stored.count
            self._keep(stored)
        return stored is not None

    def _finish_requests(self, requests: Iterable[JournalRequest], shard: int) -> None:
        """Add the rows of the requests, many at a time.  Whatever :meth:`emit` stores is of requests that are all in it."""
        for group in self._groups(requests):
            self._rows.finish(group, shard, self._batch)
            if not self._batch.room:
                self.emit()

    def _groups(self, requests: Iterable[JournalRequest]) -> Iterator[list[JournalRequest]]:
        """The requests in groups that the open batch has room for."""
        group: list[JournalRequest] = []
        most, held = min(_GROUP, self._batch.room), 0
        for request in requests:
            group.append(request)
            held += request.size
            if len(group) >= most or held >= _GROUP_BYTES:
                yield group
                group, most, held = [], min(_GROUP, self._batch.room), 0
        if group:
            yield group

    def emit(self) -> None:
        """Make the finished requests durable, then score, fold and export them."""
        self._emitted_ns = time.monotonic_ns()
        if not len(self._batch) and not any(reader.has_news for reader in self._readers.values()):
            return
        news = [reader.take_news() for reader in self._readers.values()]
        positions = {shard: reader.position for shard, reader in self._readers.items()}
        stored = self._batch.close(news, positions, self._rows.models.taken())
        self._batch = self._new_batch()
        self._give(corrected(stored, self._clock))

    def _keep(self, stored: StoredBatch) -> None:
        self._writer.append(stored)
        for graded in self._graded(stored):
            self._take(graded)
        self._drop_segments()

    def _new_batch(self) -> OpenBatch:
        return OpenBatch(self._rows.numbers, answers=self._outlets.answers, shown=self._rows.scrubbed)

    def finish(self, end: journal.RunEnd | None = None, *, save: bool = True) -> Reduction:
        """Read to the end, and close what is still open as unfinished.

        *end*: as the run recorded it; None where it was interrupted.  *save*: as a file, for who merges several.
        """
        while self.step(3600.0):
            pass
        left = self._aside.left if self._aside is not None else self._read_rest(end)
        assert left is not None  # a process that reads aside has come to its end
        for graded in () if self._slow is None else self._slow.rest():
            self._take(graded)
        self._outlets.end()
        reduction, pipeline = self.reduction, self._pipeline
        reduction.folds, reduction.counts, reduction.groups = pipeline.folds(), pipeline.counts, pipeline.groups()
        reduction.raw_values, reduction.plugin_folds = pipeline.dump_raw_values(), pipeline.dump_plugin_folds()
        reduction.off = pipeline.off
        self._failures |= {plugin: sentence for plugin, sentence in left.failures.items() if plugin not in self._failures}
        reduction.failures = list(self._failures.values())
        reduction.notes += left.notes.values()
        reduction.missing = left.missing
        if left.damaged:
            reduction.lost += left.lost
            reduction.lost += lost_columns(self.journal, {} if end is None or self._durable else end.columns)
        elif end is not None or journal.numbered(self.journal, "shard-*.seg"):
            reduction.lost = []  # all of it is in the segments, too
        if save:
            reduction.save(self.journal, self.index)
        self._writer.close()
        self._drop_segments(ended=True)
        if not self.rows_wait:
            self._outlets.close()
        if self._aside is not None:
            self._aside.begin_rows(finishing=reduction.finishing) if self.rows_wait else self._aside.close()
        return reduction

    def _read_rest(self, end: journal.RunEnd | None) -> Left:
        """Close what is still open as unfinished."""
        sent, died, begun = (end.requests, end.died, end.first_requests) if end is not None else ({}, (), {})
        for shard, reader in self._readers.items():
            self._finish_requests(reader.unfinished(ended=shard in sent and shard not in died), shard)
        self.emit()
        missing = sum(reader.missing(sent.get(shard, 0), begun.get(shard, ())) for shard, reader in self._readers.items())
        damaged = bool(missing) or any(reader.damaged for reader in self._readers.values())
        lost = lost_frames(self._readers.values(), self._rows.prompts.unknown) if damaged else []
        return Left(self._rows.notes | self._rows.prompts.notes, self._failures, missing, lost, damaged)

    def _report(self, plugin: str, sentence: str) -> None:
        """Keep, and log, the first failure of each plugin."""
        if plugin not in self._failures:
            self._failures[plugin] = sentence
            log.warning("%s", sentence)

    def _graded(self, stored: StoredBatch) -> Iterable[StoredBatch]:
        """The batch; one with answers for a slow grader, and those behind it, once they are graded."""
        return (stored,) if self._slow is None else self._slow.through(stored)

    def _take(self, stored: StoredBatch) -> None:
        """Score, fold and export a batch."""
        reduction = self.reduction
        reduction.add(stored)
        if self.watch is not None:
            self.watch.note(stored.events)
        for _, kind, value in stored.events:
            if kind == journal.PHASE and value["event"] == "begin":  # at one instant for all shards
                self._pipeline.begins_ns.setdefault(value["phase"], value["at_ns"] - self._zero_ns)
        if stored.count:
            reduction.pending += waiting(stored.grades)
            scored = self._pipeline.score(self._record_batch(stored))
            reduction.ungraded = with_ungraded(reduction.ungraded, scored, self.plan.load.phases)
            self._pipeline.feed(scored)
            self._outlets.give(scored)
            if self.recent is not None:
                self.recent.add(scored)
            if self._tell is not None:
                self._tell(scored)

    def _record_batch(self, stored: StoredBatch) -> RecordBatch:
        finishing, numbers = self.reduction.finishing, self._rows.numbers
        return batch_of(stored, self.plan, self._store, finishing=finishing, further=numbers)

    def _drop_segments(self, *, ended: bool = False) -> None:
        """Delete segments whose requests are all in the columns, unless a plugin failed: its author needs them."""
        failed = self._failures or self._pipeline.off
        if not self._durable or failed or self.plan.output.export_level == "raw":
            return
        drop_segments(self.journal, self._readers, ended=ended)

    def _recover(self) -> None:
        """Take what earlier reducers made durable; go on behind it."""
        pattern = f"columns-{self.index}.*" if self._durable else "columns-*.*"
        regrading = self.plan.plugins.grading_again
        again = (regrading and segments_are_whole(self.plan, self.journal)) or (
            not self._durable
            and prefers_segments(self.plan, self.journal, self._rows.numbers, note=self.reduction.notes.append)
        )
        self.reduction.again = again
        if self._durable:
            correct_columns(self.journal, self.index, self._clock)
        for path in [] if again else journal.numbered(self.journal, pattern):
            whole = damaged = 0
            for batch, frame in read_batches(path):
                stored = corrected(batch, self._clock)
                skip_stored(stored, self._readers, self._rows)
                kept = regraded(stored, self.plan, self._store, self._rows.grading) if regrading else stored
                for graded in self._graded(kept):
                    self._take(graded)
                whole, damaged = frame.end, damaged + frame.skipped
            if self._durable:
                self._writer.resume(path, whole)
            elif damaged := damaged + path.stat().st_size - whole:
                self.reduction.lost.append(f"{damaged:,} bytes of {path.name} are damaged")
        for reader in self._readers.values():
            reader.skip_dropped()



def groupings(plan: Plan, known: Catalogue) -> dict[int, list[Grouping]]:
    """The groupings of each phase's requests: by the texts that metrics name, and in a profiling phase by slice and URL."""
    wanted: list[Grouping] = []
    if plan.output.slice_ns is not None:
        wanted.append(BySlice(plan.output.slice_ns))
    if len(plan.target.urls) > 1:
        wanted.append(ByUrl())
    texts, found = texts_of(known), dict[int, list[Grouping]]()
    for phase in plan.load.phases:  # the keys of a text are those of its phase
        by_text = [ByText(text, metrics.folded) for text, metrics in texts.items()]
        if chosen := [*(wanted if phase.kind == "profiling" else ()), *by_text]:
            found[phase.index] = chosen
    return found
