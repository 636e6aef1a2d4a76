"""The good requests of a phase: their times, and the load that each was under."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from msgspec import Struct
from numpy.typing import NDArray

from aiperf_verdict_cold_server.instants import Moments, count_up

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
    good = _good(evidence)
    count = int(np.count_nonzero(good))
    if not count:
        return None
    judged = _Judged.of(evidence, _some(evidence, good, max(1, count // _MOST_ROWS)), begin_ns)
    begun, end = judged.begun, judged.ended
    first = np.where(np.isnan(judged.first), end, judged.first) - begun
    later = begun >= np.median(begun)
    near, usual_s = float(np.median(first[later])), float(np.median((end - begun)[later]))
    behind, ahead = Moments(begun + near), Moments(begun - near, "left")
    load, decode_load = _loads(evidence, judged, begin_ns, usual_s, behind, ahead)
    streamed = not np.isnan(judged.first).all()
    around = companions = (behind.counts - ahead.counts).astype(np.float64) - 1
    if not streamed and open_loop(evidence):  # the load is just that
        around = np.zeros(len(begun))
    lengths = np.zeros(len(begun)) if streamed else np.nan_to_num(judged.made)
    conditions = (_bins(around), _bins(load, _COARSE), _bins(judged.uncached), _bins(lengths), _kinds(evidence, judged))
    return ColdRequests(
        begun, first, judged.between(), _cells(*conditions), _cells(_bins(decode_load)), companions, streamed
    )


def _good(evidence: Evidence) -> NDArray[np.bool_]:
    """Whether each request of the phase has a whole answer."""
    parts = [np.zeros(0, dtype=bool)]
    for outcome, sent, ended in evidence.columns("outcome", "sent_ns", "ended_ns"):
        parts.append((outcome == _COMPLETED) & ~np.isnan(sent) & ~np.isnan(ended))
    return np.concatenate(parts)


def _some(evidence: Evidence, good: NDArray[np.bool_], step: int) -> NDArray[np.int64]:
    """Every so many of the good requests, in the order of their starts."""
    chosen, seen = list[NDArray[np.int64]](), 0
    for requests, _ in evidence.ordered("sent_ns"):
        own = requests[good[requests]]
        chosen.append(own[-seen % step :: step].copy())  # a part would keep the whole block
        seen += len(own)
    return np.concatenate(chosen)


class _Judged(Struct, frozen=True):
    """The requests that are looked at, in the order of their starts, in s since the begin of the phase.

    rows: their places among all.  made: tokens of each.  uncached: prompt tokens that had to be computed, as far as it is
    known; 0 where it isn't.
    """

    rows: NDArray[np.int64]
    begun: Floats
    first: Floats
    last: Floats
    ended: Floats
    made: Floats
    uncached: Floats
    entry: Floats
    turn: Floats

    @classmethod
    def of(cls, evidence: Evidence, rows: NDArray[np.int64], begin_ns: float) -> _Judged:
        instants = _taken(evidence, rows, ("sent_ns", "first_token_ns", "last_token_ns", "ended_ns"))
        begun, first, last, ended = ((column - begin_ns) / 1e9 for column in instants)
        made, thoughts, entry, turn = _taken(evidence, rows, ("output_tokens", "reasoning_tokens", "entry", "turn"))
        theirs, ours, cached = _taken(evidence, rows, ("usage_prompt_tokens", "input_tokens", "usage_cached_tokens"))
        uncached = np.nan_to_num(np.where(np.isnan(theirs), ours, theirs) - np.nan_to_num(cached))
        return cls(rows, begun, first, last, ended, made + np.nan_to_num(thoughts), uncached, entry, turn)

    def between(self) -> Floats:
        """Mean time between the tokens of each."""
        span = self.last - self.first
        return np.where((self.made > 1) & (span > 0), span / np.maximum(1, self.made - 1), np.nan)


def _taken(evidence: Evidence, rows: NDArray[np.int64], names: Sequence[str]) -> list[Floats]:
    """These columns of some requests."""
    order = np.argsort(rows)
    ascending, found, begin = rows[order], [np.empty(len(rows)) for _ in names], 0
    for block in evidence.columns(*names):
        end = begin + len(block[0])
        inside = slice(*np.searchsorted(ascending, (begin, end)))
        for values, column in zip(found, block, strict=True):
            values[order[inside]] = column[ascending[inside] - begin]
        begin = end
    return found


def _loads(
    evidence: Evidence, judged: _Judged, begin_ns: float, usual_s: float, *others: Moments
) -> tuple[Floats, Floats]:  # fmt: skip
    """The load that each met when it began, and between its first and its last token; and starts up to *others*.

    Where due times alone decide, requests begun in a usual latency: a slow server has more in flight, and that is no other
    load. Else requests in flight.
    """
    begun, last = judged.begun, np.where(np.isnan(judged.last), judged.ended, judged.last)

    def instants(name: str) -> Iterator[Floats]:
        return ((values - begin_ns) / 1e9 for _, values in evidence.ordered(name))

    if open_loop(evidence):
        since = begun - usual_s
        from_since, to_begun, to_last = Moments(since, "left"), Moments(begun), Moments(last)
        count_up(instants("sent_ns"), *others, from_since, to_begun, to_last)
        span = np.maximum(last - since, 1e-9)
        before, until_begun, until_last = (each.counts for each in (from_since, to_begun, to_last))
        return (until_begun - before).astype(np.float64), (until_last - before).astype(np.float64) / span * usual_s
    first = np.where(np.isnan(judged.first), begun, judged.first)
    started, ended = ([Moments(at) for at in (begun, first, last)] for _ in range(2))
    count_up(instants("sent_ns"), *others, *started)
    count_up(instants("ended_ns"), *ended)
    flying = started[0].counts - ended[0].counts
    area = (started[2].areas - started[1].areas) - (ended[2].areas - ended[1].areas)
    return flying.astype(np.float64), area / np.maximum(last - first, 1e-9)


def open_loop(evidence: Evidence) -> bool:
    """Whether due times alone decide when requests begin."""
    return evidence.phase.paced and evidence.phase.concurrency is None


def _kinds(evidence: Evidence, judged: _Judged) -> NDArray[np.int64]:
    """Whether a request is a later turn, and whether its prompt was sent before: a cache may have it."""
    turns = float(np.nanmax(judged.turn, initial=0.0)) + 1
    own = _prompts(judged.entry, judged.turn, turns)
    prompts = np.unique(own)
    earliest, first, begin = np.full(len(prompts), np.inf), np.full(len(prompts), -1), 0
    for sent, entry, turn in evidence.columns("sent_ns", "entry", "turn"):
        asked = _prompts(entry, turn, turns)
        places = np.minimum(np.searchsorted(prompts, asked), len(prompts) - 1)
        rows = np.flatnonzero((prompts[places] == asked) & ~np.isnan(sent))
        places, known, instants = places[rows], earliest.copy(), sent[rows]
        np.minimum.at(earliest, places, instants)
        new = (instants == earliest[places]) & (instants < known[places])
        first[places[new][::-1]] = begin + rows[new][::-1]  # of those sent at once the first
        begin += len(sent)
    again = first[np.searchsorted(prompts, own)] != judged.rows
    found: NDArray[np.int64] = again + 2 * (judged.turn > 0).astype(np.int64)
    return found


def _prompts(entry: Floats, turn: Floats, turns: float) -> Floats:
    """A number for each turn of each entry; -inf where it isn't known, NaN for turns from number *turns* on."""
    found: Floats = entry * turns + turn
    found[np.isnan(found)] = -np.inf
    found[turn >= turns] = np.nan
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
