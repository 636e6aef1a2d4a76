"""Values of one phase apart by group: by time slice, or by URL.

A request belongs to the slice in which it ends, its start to the one in which it starts, an element of a list to the one in
which it happened, and what comes with the content, tokens, to those in which the content arrived.  Like :mod:`aiperf.fold`
exact, mergeable and flat in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from aiperf import fold, journal
from aiperf.columns import Column, Floats, Ints, Ragged, RecordBatch
from aiperf.errorkinds import Counts, bounded, counted
from aiperf.fold import Buckets
from aiperf.metric import Metric

KINDS = ("completed", "failed", "cut", "empty", "cancelled", "aborted", "unfinished")
"""What becomes of a request that was sent."""
FAILED, CUT, EMPTY = 0, 1, 2
"""How a request failed: the column ``fault``."""

_KINDS_OF = {journal.COMPLETED: 0, journal.ERROR: 1, journal.CANCELLED: 4, journal.ABORTED: 5, journal.UNFINISHED: 6}
_NOWHERE = np.iinfo(np.int32).min
_PAIR = np.dtype([("group", "<i4"), ("value", "<f8")])

Paired: TypeAlias = NDArray[np.void]
"""Values of type _PAIR."""


def kinds(batch: RecordBatch) -> Ints:
    """What became of each request, as an index into KINDS."""
    found = np.zeros(len(batch), dtype=np.int64)
    outcomes = batch["outcome"]
    for outcome, kind in _KINDS_OF.items():
        found[outcomes == outcome] = kind
    failed = outcomes == journal.ERROR
    found[failed] += np.nan_to_num(batch["fault"][failed]).astype(np.int64)
    return found


def named(counts: Mapping[int, int]) -> dict[str, int]:
    """Counts by the name of their kind, in the order of KINDS."""
    return {KINDS[kind]: counts[kind] for kind in sorted(counts)}


class Grouping(Protocol):
    """Which group each request, each start and each element belongs to; *begin_ns*: when the phase began.

    timed: groups are spans of time.
    """

    name: str
    timed: bool

    def ends(self, batch: RecordBatch, begin_ns: float) -> Ints: ...

    def starts(self, batch: RecordBatch, begin_ns: float) -> Ints: ...

    def elements(self, batch: RecordBatch, column: Ragged, begin_ns: float) -> Ints: ...


class BySlice:
    """Slices of *width_ns* from the beginning of the phase on."""

    name = "slices"
    timed = True

    def __init__(self, width_ns: int) -> None:
        self.width_ns = width_ns

    def ends(self, batch: RecordBatch, begin_ns: float) -> Ints:
        return self._at(batch["ended_ns"], begin_ns)

    def starts(self, batch: RecordBatch, begin_ns: float) -> Ints:
        return self._at(batch["started_ns"], begin_ns)

    def elements(self, batch: RecordBatch, column: Ragged, begin_ns: float) -> Ints:
        return self._at(column.at_ns, begin_ns)

    def _at(self, instants: Floats, begin_ns: float) -> Ints:
        absent = np.isnan(instants)
        found = np.floor((np.where(absent, begin_ns, instants) - begin_ns) / self.width_ns).astype(np.int64)
        found[absent] = _NOWHERE  # what never ended has no slice
        return found


class ByUrl:
    """A group for each URL."""

    name = "urls"
    timed = False

    def ends(self, batch: RecordBatch, begin_ns: float) -> Ints:
        return batch["url"].astype(np.int64)

    starts = ends

    def elements(self, batch: RecordBatch, column: Ragged, begin_ns: float) -> Ints:
        return np.repeat(self.ends(batch, begin_ns), np.diff(column.offsets))


class Tally(Struct):
    """One group's requests: how many were started in it, and what became of those that ended in it."""

    started: int = 0
    kinds: dict[int, int] = {}
    errors: Counts = {}

    def merge(self, other: Tally) -> None:
        self.started += other.started
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        for error, (count, first_ns) in other.errors.items():
            counted(self.errors, error, count, first_ns)
        self.errors = bounded(self.errors)


class Pairs:
    """One metric's values with their groups: in memory up to a bound, in a file beyond it; lists beyond the budget as
    buckets."""

    def __init__(self, path: Path, *, listed: bool) -> None:
        self._path, self.listed = path, listed
        self._held: list[tuple[Ints, Floats]] = []
        self._held_count = 0
        self.count = 0
        self.buckets: dict[int, Buckets] | None = None

    def add(self, groups: Ints, values: Floats) -> None:
        known = np.isfinite(values) & (groups != _NOWHERE)
        if not known.all():
            groups, values = groups[known], values[known]
        if not len(values):
            return
        self.count += len(values)
        if self.buckets is not None:
            _bucketed(self.buckets, groups, values)
            return
        self._held.append((groups, values))
        self._held_count += len(values)
        if self.listed and self.count > fold.BUDGET:
            self.buckets = {}
            for block in self.blocks():
                _bucketed(self.buckets, block["group"], block["value"])
            self._held, self._held_count = [], 0
            self._path.unlink(missing_ok=True)
        elif self._held_count > fold.IN_MEMORY:
            self._spill()

    def blocks(self) -> Iterator[Paired]:
        """All pairs that are kept exactly, in no particular order, some at a time."""
        if self._path.exists():
            with self._path.open("rb") as file:
                while len(block := np.fromfile(file, dtype=_PAIR, count=fold.IN_MEMORY)):
                    yield block
        yield from (_paired(groups, values) for groups, values in self._held)

    def dump(self) -> bytes:
        self._spill()
        return msgspec.msgpack.encode((str(self._path), self.listed, self.count, self.buckets))

    @classmethod
    def load(cls, data: bytes) -> Pairs:
        path, listed, count, buckets = msgspec.msgpack.decode(data, type=tuple[str, bool, int, dict[int, Buckets] | None])
        pairs = cls(Path(path), listed=listed)
        pairs.count, pairs.buckets = count, buckets
        return pairs

    def _spill(self) -> None:
        if self._held:
            with self._path.open("ab") as file:
                for groups, values in self._held:
                    file.write(_paired(groups, values).tobytes())
            self._held, self._held_count = [], 0


def _paired(groups: Ints, values: Floats) -> Paired:
    pairs = np.empty(len(values), dtype=_PAIR)
    pairs["group"], pairs["value"] = groups, values
    return pairs


def _bucketed(buckets: dict[int, Buckets], groups: Ints, values: Floats) -> None:
    for group, part in apart(groups, values):
        buckets.setdefault(group, Buckets()).add(part)


def apart(groups: Ints, values: Floats) -> Iterator[tuple[int, Floats]]:
    """Each group's values, groups in ascending order."""
    order = np.argsort(groups, kind="stable")
    groups, values = groups[order], values[order]
    edges = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield int(groups[begin]), values[begin:end]


class Grouped(Struct):
    """A phase's groups under one grouping, as a reducer leaves them.

    pairs: by tag, the state of :class:`Pairs`.  arrived: by tag, amounts that came with the content, by group.
    """

    phase: int
    grouping: str
    tallies: dict[int, Tally]
    pairs: dict[str, bytes]
    arrived: dict[str, dict[int, int]]


class Groups:
    """Folds one phase's requests apart by *grouping*.  *spool* is the beginning of the paths of its files."""

    def __init__(self, grouping: Grouping, phase: int, begin_ns: float, spool: str) -> None:
        self._grouping, self._phase, self._begin_ns, self._spool = grouping, phase, begin_ns, spool
        self._pairs: dict[str, Pairs] = {}
        self._tallies: dict[int, Tally] = {}
        self._arrived: dict[str, dict[int, int]] = {}

    def add(self, batch: RecordBatch, values: Mapping[str, Column], metrics: Mapping[str, Metric]) -> None:
        """Take a batch of this phase with its metrics' values."""
        grouping, begin_ns = self._grouping, self._begin_ns
        ends = grouping.ends(batch, begin_ns)
        self._count(batch, ends)
        pieces = batch.lists("piece_count")
        instants = grouping.elements(batch, pieces, begin_ns) if grouping.timed else None
        for tag, column in values.items():
            pairs = self._pairs.get(tag)
            if pairs is None:
                pairs = self._pairs[tag] = Pairs(Path(f"{self._spool}-{len(self._pairs)}"), listed=isinstance(column, Ragged))
            if isinstance(column, Ragged):
                pairs.add(grouping.elements(batch, column, begin_ns), column.values)
                continue
            pairs.add(ends, column)
            if instants is not None and metrics[tag].arriving:
                found = self._arrived.setdefault(tag, {})
                for group, amount in _arrivals(column, pieces, instants):
                    found[group] = found.get(group, 0) + amount

    def _count(self, batch: RecordBatch, ends: Ints) -> None:
        for group, count in _counts(self._grouping.starts(batch, self._begin_ns)):
            self._tallies.setdefault(group, Tally()).started += count
        became = kinds(batch)
        for code, count in _counts(np.where(ends == _NOWHERE, _NOWHERE, ends * len(KINDS) + became)):
            group, kind = divmod(code, len(KINDS))
            counts = self._tallies.setdefault(group, Tally()).kinds
            counts[kind] = counts.get(kind, 0) + count
        if not self._grouping.timed:  # slices are many, and errors stand in the whole already
            instants = batch["ended_ns"]
            for i in np.flatnonzero(became != 0).tolist():
                error = batch.texts["error"][i]
                if error is not None:
                    tally = self._tallies[int(ends[i])]
                    counted(tally.errors, error, 1, float(instants[i]))
                    tally.errors = bounded(tally.errors)

    def dump(self) -> Grouped:
        pairs = {tag: each.dump() for tag, each in self._pairs.items()}
        return Grouped(self._phase, self._grouping.name, self._tallies, pairs, self._arrived)


class Together:
    """What several reducers left of one phase's groups, merged.

    *first* and *last*: groups beyond these count in them (an instant on the very end of the phase is in its last slice).
    """

    def __init__(self, stored: Sequence[Grouped], first: int, last: int) -> None:
        self._stored, self._first, self._last = stored, first, last
        self.tallies: dict[int, Tally] = {}
        for each in stored:
            for group, tally in each.tallies.items():
                self.tallies.setdefault(self._within(group), Tally()).merge(tally)

    def tally(self, group: int) -> Tally:
        return self.tallies.get(group) or Tally()

    def arrived(self, tag: str) -> dict[int, int]:
        """The amounts of this metric, by the group in which they arrived."""
        found: dict[int, int] = {}
        for each in self._stored:
            for group, amount in each.arrived.get(tag, {}).items():
                within = self._within(group)
                found[within] = found.get(within, 0) + amount
        return found

    def values(self, tag: str) -> Iterator[tuple[int, Floats | Buckets]]:
        """Each group's values of this metric: in ascending order, or as buckets where they are not kept."""
        parts = [Pairs.load(each.pairs[tag]) for each in self._stored if tag in each.pairs]
        # By the count of all together, so that how many reducers there were changes no number.
        listed = any(part.listed for part in parts) and sum(part.count for part in parts) > fold.BUDGET
        if listed or any(part.buckets is not None for part in parts):
            yield from sorted(self._buckets(parts).items())
            return
        blocks = [block for part in parts for block in part.blocks()]
        if blocks:
            pairs = np.concatenate(blocks)
            groups = np.clip(pairs["group"], self._first, self._last).astype(np.int64)
            for group, values in apart(groups, pairs["value"]):
                values.sort()
                yield group, values

    def _buckets(self, parts: Iterable[Pairs]) -> dict[int, Buckets]:
        merged: dict[int, Buckets] = {}
        for part in parts:
            for group, buckets in (part.buckets or {}).items():
                merged.setdefault(self._within(group), Buckets()).merge(buckets)
            for block in part.blocks() if part.buckets is None else ():
                groups = np.clip(block["group"], self._first, self._last).astype(np.int64)
                _bucketed(merged, groups, block["value"])
        return merged

    def _within(self, group: int) -> int:
        return min(max(group, self._first), self._last)


def _counts(groups: Ints) -> Iterator[tuple[int, int]]:
    """Each group and how often it is there."""
    found, counts = np.unique(groups[groups != _NOWHERE], return_counts=True)
    return zip(found.tolist(), counts.tolist(), strict=True)


def _arrivals(amounts: Floats, pieces: Ragged, groups: Ints) -> Iterator[tuple[int, int]]:
    """The part of each request's whole *amount* that came in each group.

    It came in equal parts with the pieces of content, *pieces* at each instant, whose groups are *groups*: which piece had
    how many tokens is known of the text as a whole alone.  Whole numbers all the way: the parts of a request add up to it.
    """
    lengths = np.diff(pieces.offsets)
    wanted = np.isfinite(amounts) & (lengths > 0)
    rows = np.repeat(wanted, lengths)
    upto = np.cumsum(pieces.values)
    before = np.concatenate(([0.0], upto))[pieces.offsets]
    owners = np.repeat(np.arange(len(lengths)), lengths)[rows]
    so_far, whole = upto[rows] - before[owners], before[owners + 1] - before[owners]
    came = np.floor(amounts[owners] * so_far / whole)
    first = np.concatenate(([True], owners[1:] != owners[:-1])) if len(owners) else np.empty(0, dtype=bool)
    came[1:] -= np.where(first[1:], 0, came[:-1])
    for group, parts in apart(groups[rows], came):
        yield group, int(parts.sum())
