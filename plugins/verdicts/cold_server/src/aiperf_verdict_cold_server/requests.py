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
    judged = _Judged.of(evidence, everyone, rows, begin_ns)
    begun, end = judged.begun, judged.ended
    first = np.where(np.isnan(judged.first), end, judged.first) - begun
    later = begun >= np.median(begun)
    near = float(np.median(first[later]))
    starts = everyone.begun[: np.count_nonzero(~np.isnan(everyone.begun))]  # in order, those without a start behind them
    streamed = not np.isnan(judged.first).all()
    around = companions = _between(starts, begun - near, begun + near) - 1
    if not streamed and open_loop(evidence):  # the load is just that
        around = np.zeros(len(rows))
    load, decode_load = _loads(evidence, everyone, judged, starts, float(np.median((end - begun)[later])))
    tokens, kinds = _uncached(evidence, everyone.order[rows]), _kinds(evidence, everyone.order, rows)
    lengths = np.zeros(len(rows)) if streamed else np.nan_to_num(judged.made)
    return ColdRequests(
        begun, first, judged.between(), _cells(_bins(around), _bins(load, _COARSE), _bins(tokens), _bins(lengths), kinds),
        _cells(_bins(decode_load)), companions, streamed,
    )  # fmt: skip


class _Times(Struct, frozen=True):
    """All requests of the phase, in the order of their starts, in s since its begin."""

    order: NDArray[np.int64]
    begun: Floats
    ended: Floats
    good: NDArray[np.bool_]

    @classmethod
    def of(cls, evidence: Evidence, begin_ns: float) -> _Times:
        order = np.argsort(evidence.column("sent_ns"), kind="stable")
        sent, ended = ((evidence.column(name)[order] - begin_ns) / 1e9 for name in ("sent_ns", "ended_ns"))
        good = (evidence.column("outcome")[order] == _COMPLETED) & ~np.isnan(sent) & ~np.isnan(ended)
        return cls(order, sent, ended, good)


class _Judged(Struct, frozen=True):
    """The times of the requests that are looked at, and how many tokens each made."""

    begun: Floats
    first: Floats
    last: Floats
    ended: Floats
    made: Floats

    @classmethod
    def of(cls, evidence: Evidence, everyone: _Times, rows: NDArray[np.int64], begin_ns: float) -> _Judged:
        def column(name: str) -> Floats:
            return evidence.column(name)[everyone.order[rows]]

        first, last = ((column(name) - begin_ns) / 1e9 for name in ("first_token_ns", "last_token_ns"))
        made = column("output_tokens") + np.nan_to_num(column("reasoning_tokens"))
        return cls(everyone.begun[rows], first, last, everyone.ended[rows], made)

    def between(self) -> Floats:
        """Mean time between the tokens of each."""
        span = self.last - self.first
        return np.where((self.made > 1) & (span > 0), span / np.maximum(1, self.made - 1), np.nan)


def _loads(evidence: Evidence, everyone: _Times, judged: _Judged, starts: Floats, usual_s: float) -> tuple[Floats, Floats]:
    """The load that each met when it began, and between its first and its last token.

    Where due times alone decide, requests begun in a usual latency: a slow server has more in flight, and that is no other
    load. Else requests in flight.
    """
    begun, last = judged.begun, np.where(np.isnan(judged.last), judged.ended, judged.last)
    if open_loop(evidence):
        since = begun - usual_s
        span = np.maximum(last - since, 1e-9)
        return _between(starts, since, begun), _between(starts, since, last) / span * usual_s
    ends = np.sort(everyone.ended[~np.isnan(everyone.ended)])
    flying = np.searchsorted(starts, begun, side="right") - np.searchsorted(ends, begun, side="right")
    first = np.where(np.isnan(judged.first), begun, judged.first)
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


def _uncached(evidence: Evidence, rows: NDArray[np.int64]) -> Floats:
    """Prompt tokens of these requests that had to be computed, as far as it is known; 0 where it isn't."""
    theirs, ours, cached = (
        evidence.column(name)[rows] for name in ("usage_prompt_tokens", "input_tokens", "usage_cached_tokens")
    )
    found: Floats = np.nan_to_num(np.where(np.isnan(theirs), ours, theirs) - np.nan_to_num(cached))
    return found


def _kinds(evidence: Evidence, order: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whether a request of *rows* is a later turn, and whether its prompt was sent before: a cache may have it."""
    turn = evidence.column("turn")[order]
    later, prompt = (turn[rows] > 0).astype(np.int64), evidence.column("entry")[order]
    prompt *= np.nanmax(turn, initial=0.0) + 1
    prompt += turn
    del turn
    again = np.ones(len(order), dtype=bool)
    again[np.unique(prompt, return_index=True)[1]] = False
    found: NDArray[np.int64] = again[rows] + 2 * later
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
