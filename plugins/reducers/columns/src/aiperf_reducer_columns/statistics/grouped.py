"""Values of one phase by group: by time slice, by URL, or by the values of a text (``by_text.py``).

A request counts in the slice in which it ends, its start in the slice in which it starts, an element of a list where it
happened, and tokens where the content arrived.  Like ``statistics/fold.py`` exact, mergeable and flat in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from aiperf.sdk.columns import Bounds, Column, Floats, Ints, Ragged, RecordBatch
from aiperf.sdk.metric import Metric
from msgspec import Struct
from msgspec.structs import astuple

from aiperf_reducer_columns.statistics.by_text import ByText
from aiperf_reducer_columns.statistics.described import PERCENTILES
from aiperf_reducer_columns.statistics.exact_sum import exactly
from aiperf_reducer_columns.statistics.fold import ESTIMATE, HIGH, LOW, NOWHERE, SLACK, Buckets, Merged, Samples, add_counts
from aiperf_reducer_columns.statistics.phase_counts import KINDS, Tally, counts_of, failures, kinds


class BySlice:
    """Slices of *width_ns* from the begin of the phase."""

    name = "slices"
    timed = True
    tags: frozenset[str] | None = None

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
        slices = np.floor((np.where(absent, begin_ns, instants) - begin_ns) / self.width_ns).astype(np.int64)
        slices[absent] = NOWHERE  # a request that never ended has no slice
        return slices


class ByUrl:
    """A group for each URL."""

    name = "urls"
    timed = False
    tags: frozenset[str] | None = None

    def ends(self, batch: RecordBatch, begin_ns: float) -> Ints:
        return batch["url"].astype(np.int64)

    starts = ends

    def elements(self, batch: RecordBatch, column: Ragged, begin_ns: float) -> Ints:
        return np.repeat(self.ends(batch, begin_ns), np.diff(column.offsets))


Grouping: TypeAlias = BySlice | ByUrl | ByText
"""Gives the group of each request, each start and each element; *begin_ns*: begin of the phase.  timed: groups are spans of
time.  tags: the metrics that are folded by group; None is all."""


Sides: TypeAlias = tuple[Floats | Buckets, Floats | Buckets, float]
"""Values with the lower bounds of estimates in their place, with the upper ones, and by how much the sum may be wrong."""


class Grouped(Struct):
    """A phase's groups under one grouping, from one reducer.

    samples: by tag; those of a tag with a suffix are its values that are estimates, and their bounds.  arrived: by tag, amounts
    that came with the content, by group.  keys: of a text, the number of each one's group.  beyond: there were more keys.
    """

    phase: int
    grouping: str
    tallies: dict[int, Tally] = {}
    samples: dict[str, Samples] = {}
    arrived: dict[str, dict[int, int]] = {}
    keys: dict[str, int] = {}
    beyond: bool = False


class Groups:
    """Folds one phase's requests by *grouping*.  *spool*: prefix of the paths of its files."""

    def __init__(self, grouping: Grouping, phase: int, begin_ns: float, spool: str) -> None:
        self._grouping, self._begin_ns, self._spool = grouping, begin_ns, spool
        self.grouped = Grouped(phase, grouping.name)

    def add(self, batch: RecordBatch, values: Mapping[str, Column], metrics: Mapping[str, Metric]) -> None:
        """Add a batch of this phase with its metrics' values."""
        grouping, begin_ns, of_tag = self._grouping, self._begin_ns, self.grouped.samples
        ends = grouping.ends(batch, begin_ns)
        if isinstance(grouping, ByText):
            self._limit(grouping)
        self._count(batch, ends)
        pieces = batch.lists("piece_count")
        instants = grouping.elements(batch, pieces, begin_ns) if grouping.timed else None
        for tag, column in values.items():
            groups = grouping.elements(batch, column, begin_ns) if isinstance(column, Ragged) else ends
            for name, part, of_part in _folded(tag, column, groups, batch.bounds.get(tag)):
                if name not in of_tag:
                    of_tag[name] = Samples(
                        Path(f"{self._spool}-{len(of_tag)}"), grouped=True, listed=isinstance(column, Ragged)
                    )
                of_tag[name].add(part, of_part)
            if not isinstance(column, Ragged) and instants is not None and metrics[tag].arriving:
                add_counts(self.grouped.arrived.setdefault(tag, {}), _arrivals(column, pieces, instants))

    def _limit(self, grouping: ByText) -> None:
        """Forget groups whose keys are beyond the limit."""
        self.grouped.keys, self.grouped.beyond = grouping.keys, grouping.beyond
        for group in grouping.dropped:
            self.grouped.tallies.pop(group, None)

    def _count(self, batch: RecordBatch, ends: Ints) -> None:
        starts = self._grouping.starts(batch, self._begin_ns)
        for group, count in counts_of(starts if self._grouping.timed else starts[starts != NOWHERE]):
            self.grouped.tallies.setdefault(group, Tally()).started += count
        outcomes = kinds(batch)
        known = ends != NOWHERE
        for code, count in counts_of(ends[known] * len(KINDS) + outcomes[known]):
            group, kind = divmod(code, len(KINDS))
            add_counts(self.grouped.tallies.setdefault(group, Tally()).kinds, [(kind, count)])
        if not self._grouping.timed:  # slices are many, and the phase counts its errors
            instants = batch["ended_ns"]
            for error, row in failures(batch):
                if ends[row] != NOWHERE:
                    self.grouped.tallies[int(ends[row])].count_error(error, float(instants[row]))


class MergedGroups:
    """One phase's groups from several reducers, merged.

    *first*, *last*: a group beyond them counts in them (an instant at the very end of the phase is in its last slice).
    """

    def __init__(
        self, stored: Sequence[Grouped], first: int, last: int, percentiles: Sequence[float] = PERCENTILES
    ) -> None:
        """*percentiles*: of the statistics of each group."""
        self.percentiles = percentiles
        self._stored, self._first, self._last = stored, first, last
        self.tallies: dict[int, Tally] = {}
        for each in stored:
            for group, tally in each.tallies.items():
                self.tallies.setdefault(self._within(group), Tally()).merge(tally)

    def tally(self, group: int) -> Tally:
        return self.tallies.get(group) or Tally()

    def arrived(self, tag: str) -> dict[int, int]:
        """The amounts of this metric by the group in which they arrived."""
        amounts: dict[int, int] = {}
        for each in self._stored:
            add_counts(amounts, [(self._within(group), n) for group, n in each.arrived.get(tag, {}).items()])
        return amounts

    def values(self, tag: str) -> Iterator[tuple[int, Floats | Buckets, Sides | None]]:
        """Each group's values of this metric: in ascending order, or as buckets beyond the budget; and its bounds, if any."""
        known, estimates, lows, highs, slack = (self._samples(tag + suffix) for suffix in ("", ESTIMATE, LOW, HIGH, SLACK))
        within = (self._first, self._last)
        if not estimates:
            for group, values in Merged(known, within).groups():
                yield group, values, None
            return
        slacks = {group: _sum(values) for group, values in Merged(slack, within).groups()}
        sides = (Merged(known + side, within).groups() for side in (estimates, lows, highs))  # of the same groups
        for (group, values), (_, low), (_, high) in zip(*sides, strict=True):
            yield group, values, (low, high, slacks[group]) if group in slacks else None

    def listed(self, tag: str) -> bool:
        """Whether requests have lists of values of this metric."""
        return any(samples.listed for suffix in ("", ESTIMATE) for samples in self._samples(tag + suffix))

    def _samples(self, tag: str) -> list[Samples]:
        return [each.samples[tag] for each in self._stored if tag in each.samples]

    def _within(self, group: int) -> int:
        return min(max(group, self._first), self._last)


def _folded(tag: str, column: Column, groups: Ints, bounds: Bounds | None) -> Iterator[tuple[str, Floats, Ints]]:
    """The values of a tag, and those of its estimates and their bounds under the tag and a suffix; each with its groups."""
    values = column.values if isinstance(column, Ragged) else column
    if bounds is not None:
        low, high, slack = (part.values if isinstance(part, Ragged) else part for part in astuple(bounds))
        estimated = np.flatnonzero(low < high)
        if len(estimated):
            parts = [part[estimated] for part in (values, low, high, slack)]
            if isinstance(column, Ragged):
                owners = np.searchsorted(column.offsets, estimated, side="right")
                parts = _within_groups(parts, owners, estimated, groups[estimated])
            for suffix, part in zip((ESTIMATE, LOW, HIGH, SLACK), parts, strict=True):
                yield tag + suffix, part, groups[estimated]
            known = low >= high
            values, groups = values[known], groups[known]
    yield tag, values, groups


def _within_groups(parts: Sequence[Floats], owners: Ints, places: Ints, groups: Ints) -> list[Floats]:
    """Estimates with bounds that hold in each group alone.

    Bounds hold for a span of a request's estimates together.  Where one lies in several groups, each of its values is between 0
    and the longest.  *owners*, *places*: the request and the place of each estimate.
    """
    values, low, high, slack = parts
    begins = np.concatenate(([True], (owners[1:] != owners[:-1]) | (np.diff(places) != 1)))
    first = np.flatnonzero(begins)
    spans = np.cumsum(begins) - 1
    apart = (np.minimum.reduceat(groups, first) < np.maximum.reduceat(groups, first))[spans]
    longest = np.maximum.reduceat(high, first)[spans]
    most = np.maximum(values, longest - values)
    return [values, np.where(apart, 0, low), np.where(apart, longest, high), np.where(apart, most, slack)]


def _sum(values: Floats | Buckets) -> float:
    return float(values.sum) if isinstance(values, Buckets) else float(exactly(values))


def _arrivals(amounts: Floats, pieces: Ragged, groups: Ints) -> Iterator[tuple[int, int]]:
    """The amount that arrived in each group.

    Each request's amount arrived in equal parts with its pieces of content (*pieces* at each instant, in *groups*): tokens are
    counted over the whole text, not per piece.  All numbers are whole: the parts of a request add up to its amount.
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
    present, places = np.unique(groups[rows], return_inverse=True)
    return zip(present.tolist(), np.bincount(places, came, len(present)).astype(np.int64).tolist(), strict=True)
