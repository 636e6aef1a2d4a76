"""What the workers of a run tell each other: numbers that all of them see (``DriverContext.notes``).

At sites those of other sites come some milliseconds later, and the clocks of machines differ: instants are told as distances
from the begin of the phase.  A row has one writer, and the cell that says whether a worker is idle is written behind those that
say since when, and until when.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from aiperf.sdk.driver import NOTES

_BUSY, _IDLE, _NEXT, _PHASE, _SKIPPED, _APPLIED, _PRIMED, _OFFSET = range(8)
NEVER_NS = 1 << 62
"""An instant later than any run."""


class Board:
    """A worker's view.  *notes*: of all workers; without any this one is alone.  *shard*: this worker's number."""

    def __init__(self, notes: Sequence[MutableSequence[int]], shard: int) -> None:
        self._rows: Sequence[MutableSequence[int]] = notes or [[0] * NOTES]
        self._shard = shard if notes else 0
        self._own = self._rows[self._shard]
        self._phase = self._begin_ns = 0
        self.alone = len(self._rows) == 1

    def begin(self, phase: int, begin_ns: int) -> None:
        """The phase of that index begins; this worker's first times are not known yet."""
        self._phase, self._begin_ns = phase + 1, begin_ns
        self._own[_BUSY] = 1
        self._own[_PHASE] = self._phase

    def end(self) -> None:
        """This worker sends nothing more in the phase, and nothing of it is in flight."""
        self._own[_PHASE] = -self._phase

    # The primers of a warmup

    def primed(self, at_ns: int) -> None:
        """All primers of this worker were answered."""
        self._own[_PRIMED] = at_ns - self._begin_ns + 1

    @property
    def all_primed_ns(self) -> int | None:
        """When the last worker's primers were answered; None before that."""
        stamps = [row[_PRIMED] for row in self._rows]
        return self._begin_ns + max(stamps) - 1 if all(stamps) else None

    # The begin of profiling

    def offer_ns(self, offset_ns: int) -> None:
        """The smallest offset of this worker's lanes, 0 or more."""
        self._own[_OFFSET] = offset_ns + 1

    @property
    def least_ns(self) -> int:
        """The smallest offset of all lanes; 0 where nobody has told any."""
        return min((row[_OFFSET] for row in self._rows if row[_OFFSET]), default=1) - 1

    # Idleness of the whole run

    def fly(self) -> None:
        """Requests of this worker are in flight."""
        self._own[_BUSY] = 1

    def rest(self, since_ns: int, next_ns: int) -> None:
        """Nothing of this worker is in flight since then; the next time that is pending, NEVER_NS for none."""
        own = self._own
        own[_IDLE] = since_ns - self._begin_ns
        own[_NEXT] = next_ns if next_ns == NEVER_NS else next_ns - self._begin_ns
        own[_BUSY] = 0

    @property
    def leads(self) -> bool:
        """Whether this worker decides for all: the first one that is not through with the phase."""
        return all(row[_PHASE] == -self._phase for row in self._rows[: self._shard])

    def to_skip_ns(self, cap_ns: int) -> int:
        """By how much the next time of the run is more than *cap_ns* behind the begin of its idleness.

        0 where requests are in flight, or a worker has not begun, or not moved its times by what was decided before.
        """
        rows = [row for row in self._rows if row[_PHASE] != -self._phase]
        skipped = self._skipped
        if any(row[_PHASE] != self._phase or row[_BUSY] or row[_APPLIED] != skipped for row in rows):
            return 0
        next_ns = min((row[_NEXT] for row in rows), default=NEVER_NS)
        return max(0, next_ns - max(row[_IDLE] for row in rows) - cap_ns) if next_ns < NEVER_NS else 0

    def skip(self, amount_ns: int) -> None:
        """Decide for all workers that their times move; only who leads."""
        self._own[_SKIPPED] += amount_ns

    def unapplied_ns(self) -> int:
        """By how much this worker's times have to move; it has moved them then."""
        amount_ns = self._skipped - self._own[_APPLIED]
        self._own[_APPLIED] += amount_ns
        return amount_ns

    @property
    def _skipped(self) -> int:
        """What those have decided that led, one behind the other."""
        return sum(row[_SKIPPED] for row in self._rows)
