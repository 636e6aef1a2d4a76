"""What rows share: prefixes, hits of a cache without end, and repeated blocks, in one pass.

In a usual trace an id is the hash of all blocks up to its own, so that it always stands in the same place behind the same id:
its *home*.  Then ids, prefixes and pairs of place and id are one and the same, and one table counts all three.  What stands
elsewhere is counted apart, by hashes of 64 bits: of 50 million different prefixes two are taken for one with a probability of
1 in 15,000.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_command_analyze_trace.tables import Growing, Keys, Numbers, Table, first_at, mixed

Flags = NDArray[np.bool_]

_AGAIN, _HOME, _PREFIX_AGAIN = 1, 2, 4
"""The pair of place and id occurred again; its prefix is counted here; that occurred again."""


class Batch(Struct, frozen=True):
    """The blocks of some rows, one row behind the other.

    rows: the row of each block, counted from the begin of the trace.  places: from 0 in its row.  starts: of each block its
    row's first one in the batch.  numbers: of its id.  new: whether no earlier row has its id.
    """

    rows: Numbers
    places: Numbers
    starts: Numbers
    numbers: Numbers
    new: Flags


class Blocks:
    """Takes the rows of a trace in batches; the numbers are those of all rows so far."""

    def __init__(self) -> None:
        self.rows = self.references = 0
        self._ids, self._firsts = Table(), Table()
        self._first_row, self._place, self._before = Growing(np.int32), Growing(np.int32), Growing(np.int32)
        self._flags, self._first_again = Growing(np.uint8), Growing(np.bool_)
        self._hits, self._repeated, self._lengths = Growing(np.int32), Growing(np.int32), Growing(np.int32)
        self._pairs, self._prefixes = _Elsewhere(), _Elsewhere()

    @property
    def distinct(self) -> int:
        """Number of different ids."""
        return self._ids.size

    @property
    def unique_prefixes(self) -> int:
        return int(np.count_nonzero(self._flags.values & _HOME)) + self._prefixes.size

    @property
    def prefixes_used_once(self) -> int:
        once = (self._flags.values & (_HOME | _PREFIX_AGAIN)) == _HOME
        return int(np.count_nonzero(once)) + self._prefixes.size - self._prefixes.repeated

    @property
    def groups(self) -> int:
        """Number of ids with which two rows or more begin."""
        return int(np.count_nonzero(self._first_again.values))

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of blocks of each row."""
        return self._lengths.values

    @property
    def hits(self) -> NDArray[np.int32]:
        """The number, for each row, of leading blocks whose ids an earlier row has."""
        return self._hits.values

    @property
    def repeated(self) -> NDArray[np.int32]:
        """The number, for each row, of blocks whose id stands in the same place of another row."""
        return self._repeated.values

    def add(self, ids: Keys, lengths: Numbers) -> Batch:
        """The next rows: the ids of their blocks, one row behind the other, and how many each has."""
        known, total = self._ids.size, self.rows + len(lengths)
        ends = np.cumsum(lengths)
        starts = np.repeat(ends - lengths, lengths)
        rows = np.repeat(np.arange(self.rows, total), lengths)
        places = np.arange(len(ids)) - starts
        numbers = self._ids.numbers(ids)
        before = np.empty(len(ids), np.int64)
        before[1:] = numbers[:-1]
        before[places == 0] = -1
        first = first_at(numbers, known, self._ids.size)
        first_rows = self._homes(numbers, first, rows, places, before)
        batch = Batch(rows, places, starts, numbers, first_rows == rows)
        self._lengths.reach(total)[self.rows :] = lengths
        self._count_hits(batch, ends, lengths, total)
        in_place = self._place.values[numbers] == places
        usual = in_place & (self._before.values[numbers] == before)
        self._count_pairs(batch, first, in_place, ids, total)
        self._count_prefixes(batch, first, usual, ids)
        self._count_firsts(ids[places == 0])
        self.rows, self.references = total, self.references + len(ids)
        return batch

    def _homes(self, numbers: Numbers, first: Numbers, rows: Numbers, places: Numbers, before: Numbers) -> Numbers:
        """Keep where new ids stand; gives the first row of the id of each block."""
        known, size = self._ids.size - len(first), self._ids.size
        first_row = self._first_row.reach(size)
        first_row[known:] = rows[first]
        self._place.reach(size)[known:] = places[first]
        self._before.reach(size)[known:] = before[first]
        self._flags.reach(size)
        return first_row[numbers].astype(np.int64)

    def _count_hits(self, batch: Batch, ends: Numbers, lengths: Numbers, total: int) -> None:
        """The leading blocks that are not new."""
        misses = np.cumsum(batch.new)
        led = (misses - misses[batch.starts] + batch.new[batch.starts]) == 0
        hits = np.concatenate(([0], np.cumsum(led)))
        self._hits.reach(total)[self.rows :] = hits[ends] - hits[ends - lengths]

    def _count_pairs(self, batch: Batch, first: Numbers, in_place: Flags, ids: Keys, total: int) -> None:
        repeated, flags = self._repeated.reach(total), self._flags.values
        again = in_place.copy()
        again[first] = False
        np.add.at(repeated, batch.rows[again], 1)
        seconds = batch.numbers[again]
        seconds = np.unique(seconds[flags[seconds] & _AGAIN == 0])
        flags[seconds] |= _AGAIN
        np.add.at(repeated, self._first_row.values[seconds], 1)  # the first one counts, too
        if not in_place.all():
            other = ~in_place
            keys = mixed(ids[other] ^ mixed(batch.places[other].astype(np.uint64)))
            np.add.at(repeated, self._pairs.add(keys, batch.rows[other]), 1)

    def _count_prefixes(self, batch: Batch, first: Numbers, usual: Flags, ids: Keys) -> None:
        flags = self._flags.values
        breaks = np.cumsum(~usual)
        whole = (breaks - breaks[batch.starts] + ~usual[batch.starts]) == 0
        # A prefix is counted at its last id where the id's first occurrence had it, else by its hash.
        flags[batch.numbers[first[whole[first]]]] |= _HOME
        here = whole & (flags[batch.numbers] & _HOME != 0)
        again = here.copy()
        again[first] = False
        flags[batch.numbers[again]] |= _PREFIX_AGAIN
        if not here.all():
            parts = mixed(ids ^ mixed(batch.places.astype(np.uint64)))
            sums = np.cumsum(parts)
            keys = mixed(sums - (sums[batch.starts] - parts[batch.starts]))
            self._prefixes.add(keys[~here], batch.rows[~here])

    def _count_firsts(self, ids: Keys) -> None:
        known = self._firsts.size
        numbers = self._firsts.numbers(ids)
        again = np.ones(len(ids), np.bool_)
        again[first_at(numbers, known, self._firsts.size)] = False
        self._first_again.reach(self._firsts.size)[numbers[again]] = True


class _Elsewhere:
    """Keys with the row of their first occurrence, and whether they occurred again."""

    def __init__(self) -> None:
        self._table, self._first_row, self._again = Table(), Growing(np.int32), Growing(np.bool_)

    @property
    def size(self) -> int:
        return self._table.size

    @property
    def repeated(self) -> int:
        return int(np.count_nonzero(self._again.values))

    def add(self, keys: Keys, rows: Numbers) -> Numbers:
        """The row of each occurrence of a key that occurs twice or more, its first one included; those of now, and firsts."""
        known = self._table.size
        numbers = self._table.numbers(keys)
        size = self._table.size
        first = first_at(numbers, known, size)
        first_row, again = self._first_row.reach(size), self._again.reach(size)
        first_row[known:] = rows[first]
        repeats = np.ones(len(keys), np.bool_)
        repeats[first] = False
        seconds = numbers[repeats]
        seconds = np.unique(seconds[~again[seconds]])
        again[seconds] = True
        return np.concatenate((rows[repeats], first_row[seconds].astype(np.int64)))
