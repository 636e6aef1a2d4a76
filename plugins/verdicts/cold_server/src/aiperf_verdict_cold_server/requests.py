"""The good requests of a phase: their times, and the load that each was under."""

from __future__ import annotations

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from msgspec import Struct
from numpy.typing import NDArray

_COMPLETED = 0
"""The outcome of a request with a whole answer, as the column ``outcome`` has it."""
_FINE, _COARSE = 1.3, 1.5
"""By so much counts and lengths of one bin differ at most; numbers of requests in flight at a first token by the second."""
_MOST_ROWS = 50_000


class ColdRequests(Struct, frozen=True):
    """Requests in the order of their starts; times in s since the begin of the phase.

    first_s: until the first token, or the end of an answer that is no stream.  token_s: mean time between tokens, NaN without.
    cells, token_cells: number of the conditions under which the two were; only equal ones are compared.
    companions: other requests that began within a usual time to first token of its begin.
    """

    begun_s: Floats
    first_s: Floats
    token_s: Floats
    cells: NDArray[np.int64]
    token_cells: NDArray[np.int64]
    companions: Floats
    streamed: bool


def cold_requests(evidence: Evidence, begin_ns: float) -> ColdRequests | None:
    """The requests with a whole answer; None where there are none.  *begin_ns*: of the phase, since the run's start."""
    everyone = _Times.of(evidence, begin_ns)
    rows = np.flatnonzero(everyone.good)
    if not len(rows):
        return None
    rows = rows[:: max(1, len(rows) // _MOST_ROWS)]
    begun, end = everyone.begun[rows], everyone.ended[rows]
    first_end = np.where(np.isnan(everyone.first[rows]), end, everyone.first[rows])
    first = first_end - begun
    later = begun >= np.median(begun)
    near = float(np.median(first[later]))
    starts = np.sort(everyone.begun[~np.isnan(everyone.begun)])
    streamed = not np.isnan(everyone.first[rows]).all()
    around = companions = _between(starts, begun - near, begun + near) - 1
    if not streamed and open_loop(evidence):  # the load is just that
        around = np.zeros(len(rows))
    load, decode_load = _loads(evidence, everyone, rows, starts, float(np.median((end - begun)[later])))
    tokens, kinds = _uncached(evidence, everyone.order)[rows], _kinds(evidence, everyone.order)[rows]
    lengths = np.zeros(len(rows)) if streamed else np.nan_to_num(everyone.made[rows])
    return ColdRequests(
        begun, first, everyone.between(rows), _cells(_bins(around), _bins(load, _COARSE), _bins(tokens), _bins(lengths), kinds),
        _cells(_bins(decode_load)), companions, streamed,
    )  # fmt: skip


class _Times(Struct, frozen=True):
    """All requests of the phase, in the order of their starts, in s since its begin."""

    order: NDArray[np.int64]
    begun: Floats
    first: Floats
    last: Floats
    ended: Floats
    made: Floats
    good: NDArray[np.bool_]

    @classmethod
    def of(cls, evidence: Evidence, begin_ns: float) -> _Times:
        sent, ended = evidence.column("sent_ns"), evidence.column("ended_ns")
        order = np.argsort(sent, kind="stable")
        sent, ended, first, last = (
            (column[order] - begin_ns) / 1e9
            for column in (sent, ended, evidence.column("first_token_ns"), evidence.column("last_token_ns"))
        )
        made = evidence.column("output_tokens")[order] + np.nan_to_num(evidence.column("reasoning_tokens")[order])
        good = (evidence.column("outcome")[order] == _COMPLETED) & ~np.isnan(sent) & ~np.isnan(ended)
        return cls(order, sent, first, last, ended, made, good)

    def between(self, rows: NDArray[np.int64]) -> Floats:
        """Mean time between the tokens of each."""
        made, span = self.made[rows], (self.last - self.first)[rows]
        return np.where((made > 1) & (span > 0), span / np.maximum(1, made - 1), np.nan)


def _loads(
    evidence: Evidence, everyone: _Times, rows: NDArray[np.int64], starts: Floats, usual_s: float
) -> tuple[Floats, Floats]:
    """The load that each met when it began, and between its first and its last token.

    Where due times alone decide, requests begun in a usual latency: a slow server has more in flight, and that is no other
    load. Else requests in flight.
    """
    begun, last = everyone.begun[rows], np.where(np.isnan(everyone.last[rows]), everyone.ended[rows], everyone.last[rows])
    if open_loop(evidence):
        since = begun - usual_s
        span = np.maximum(last - since, 1e-9)
        return _between(starts, since, begun), _between(starts, since, last) / span * usual_s
    ends = np.sort(everyone.ended[~np.isnan(everyone.ended)])
    flying = np.searchsorted(starts, begun, side="right") - np.searchsorted(ends, begun, side="right")
    first = np.where(np.isnan(everyone.first[rows]), begun, everyone.first[rows])
    span = np.maximum(last - first, 1e-9)
    return flying.astype(np.float64), (_area(starts, first, last) - _area(ends, first, last)) / span


def open_loop(evidence: Evidence) -> bool:
    """Whether due times alone decide when requests begin."""
    return evidence.phase.paced and evidence.phase.concurrency is None


def _area(instants: Floats, begin: Floats, end: Floats) -> Floats:
    """The integral, from *begin* to *end*, of the number of *instants* up to a moment."""
    sums = np.concatenate(([0.0], np.cumsum(instants)))

    def until(at: Floats) -> Floats:
        count = np.searchsorted(instants, at, side="right")
        found: Floats = count * at - sums[count]
        return found

    return until(end) - until(begin)


def _between(instants: Floats, begin: Floats, end: Floats) -> Floats:
    """How many instants are in each of the intervals, both ends included."""
    counts = np.searchsorted(instants, end, side="right") - np.searchsorted(instants, begin, side="left")
    return counts.astype(np.float64)


def _uncached(evidence: Evidence, order: NDArray[np.int64]) -> Floats:
    """Prompt tokens that had to be computed, as far as it is known; 0 where it isn't."""
    theirs, ours, cached = (
        evidence.column(name)[order] for name in ("usage_prompt_tokens", "input_tokens", "usage_cached_tokens")
    )
    found: Floats = np.nan_to_num(np.where(np.isnan(theirs), ours, theirs) - np.nan_to_num(cached))
    return found


def _kinds(evidence: Evidence, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whether a request is a later turn, and whether its prompt was sent before: a cache may have it."""
    turn, entry = evidence.column("turn")[order], evidence.column("entry")[order]
    first_places = np.unique(np.column_stack((entry, turn)), axis=0, return_index=True)[1]
    again = np.ones(len(order), dtype=np.int64)
    again[first_places] = 0
    found: NDArray[np.int64] = again + 2 * (turn > 0).astype(np.int64)
    return found


def _bins(values: Floats, factor: float = _FINE) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.round(np.log1p(np.maximum(0.0, values)) / np.log(factor)).astype(np.int64)
    return found


def _cells(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each combination of the keys."""
    found: NDArray[np.int64] = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        found = np.unique(found * (int(key.max()) + 1) + key, return_inverse=True)[1].astype(np.int64)
    return found
