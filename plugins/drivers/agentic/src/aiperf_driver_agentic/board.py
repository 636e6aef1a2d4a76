"""What the workers of a run tell each other: numbers in memory that all of them see (``DriverContext.notes``)."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from aiperf.sdk.driver import NOTES

_PRIMED, _FLYING, _IDLE, _NEXT, _SKIPPED, _APPLIED, _OFFSET = range(7)
NEVER_NS = 1 << 62
"""An instant later than any run."""


class Board:
    """A worker's view.  *notes*: of all workers; without any this one is alone.  *shard*: this worker's number."""

    def __init__(self, notes: Sequence[MutableSequence[int]], shard: int) -> None:
        self._rows: Sequence[MutableSequence[int]] = notes or [[0] * NOTES]
        self._own = self._rows[shard] if notes else self._rows[0]
        self.leads = self._own is self._rows[0] or shard == 0
        self.alone = len(self._rows) == 1

    # The primers of a warmup

    def primed(self, at_ns: int) -> None:
        """All primers of this worker were answered."""
        self._own[_PRIMED] = at_ns

    @property
    def all_primed_ns(self) -> int | None:
        """When the last worker's primers were answered; None before that."""
        stamps = [row[_PRIMED] for row in self._rows]
        return max(stamps) if all(stamps) else None

    # The begin of profiling

    def offer_ns(self, offset_ns: int) -> None:
        """The smallest offset of this worker's lanes, 0 or more."""
        self._own[_OFFSET] = offset_ns + 1

    @property
    def least_ns(self) -> int:
        """The smallest offset of all lanes; 0 where nobody has told any."""
        return min((row[_OFFSET] for row in self._rows if row[_OFFSET]), default=1) - 1

    # Idleness of the whole run

    def fly(self, flying: int, at_ns: int) -> None:
        """Tell how many requests of this worker are in flight since *at_ns*."""
        self._own[_FLYING] = flying
        if not flying:
            self._own[_IDLE] = at_ns

    def expect(self, next_ns: int) -> None:
        """The next time that is pending in this worker, NEVER_NS for none."""
        self._own[_NEXT] = next_ns

    def to_skip_ns(self, cap_ns: int) -> int:
        """By how much the next time of the run is more than *cap_ns* behind the begin of its idleness.

        0 where requests are in flight, or a worker has not moved its times by what was decided before.
        """
        rows, skipped = self._rows, self._rows[0][_SKIPPED]
        if any(row[_FLYING] or row[_APPLIED] != skipped for row in rows):
            return 0
        next_ns = min(row[_NEXT] or NEVER_NS for row in rows)
        return max(0, next_ns - max(row[_IDLE] for row in rows) - cap_ns) if next_ns < NEVER_NS else 0

    def skip(self, amount_ns: int) -> None:
        """Decide for all workers that their times move; the first worker alone."""
        self._rows[0][_SKIPPED] += amount_ns

    def unapplied_ns(self) -> int:
        """By how much this worker's times have to move; it has moved them then."""
        amount_ns = self._rows[0][_SKIPPED] - self._own[_APPLIED]
        self._own[_APPLIED] += amount_ns
        return amount_ns
