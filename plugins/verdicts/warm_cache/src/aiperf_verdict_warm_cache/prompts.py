"""What a perfect prefix cache could have had of each prompt from the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from aiperf import Evidence
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.columns import Floats
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

_LEAST, _MOST_BODIES, _MOST_BYTES = 1.25, 20_000, 1 << 16
"""A beginning may have more tokens for its bytes than the rest; bodies that are compared, and bytes of each."""
_COMPLETED = 0
"""The outcome of a request with a whole answer, as the column ``outcome`` has it."""
_BLOCK = 65_536
"""Requests that are looked at together."""
_APART = (CacheBust.SYSTEM_PREFIX, CacheBust.FIRST_TURN_PREFIX)
"""Markers that make one prompt of two sessions two prompts for a cache."""


class OwnPrompts(Struct, frozen=True):
    """The prompts of the requests that were sent: sums over all.

    count: of prompts.  tokens: of the prompts.  own: the most that a cache could have of them from this run.  repeated: the
    number of prompts that were sent before in this run, not behind a marker of another session; own_repeated: of these.
    known: the bodies of first turns are known, so that *own* has what they share.
    hits, beyond, hits_repeated: tokens from the cache by the answers' own counts, what of each prompt is beyond its *own*, and
    those of repeated prompts; 0 where the requests are all that were sent.
    """

    count: int
    tokens: float
    own: float
    repeated: int
    own_repeated: float
    known: bool
    hits: float = 0.0
    beyond: float = 0.0
    hits_repeated: float = 0.0

    @property
    def mean(self) -> float:
        """Tokens of a prompt."""
        return self.tokens / self.count if self.count else 0.0


class SentPrompts(Struct, frozen=True):
    """The requests whose prompts are looked at: with the counts of their answers alone, or all that were sent.

    mean: tokens of a prompt of unknown length; None for the good requests whose answers count their own and cached tokens.
    """

    evidence: Evidence
    mean: float | None = None

    def blocks(self, *names: str) -> Iterator[tuple[Floats, ...]]:
        """The tokens of the prompts of these requests, and these columns, block by block."""
        counts = ("outcome", "sent_ns", "usage_prompt_tokens", "input_tokens", "usage_cached_tokens")
        for outcome, sent, theirs, ours, cached, *others in self.evidence.columns(*counts, *names):
            if self.mean is None:
                rows = (outcome == _COMPLETED) & ~np.isnan(theirs) & ~np.isnan(cached)
                tokens = theirs[rows]
            else:
                rows = ~np.isnan(sent)
                known: Floats = np.where(np.isnan(theirs), ours, theirs)[rows]
                tokens = np.where(np.isnan(known), self.mean, known)
            yield tokens, *(other[rows] for other in others)

    def total(self, parts: Iterable[Floats], count: int) -> float:
        """The sum of at most *count* values: of one array, because sums of parts are rounded otherwise."""
        whole, end = np.empty(count), 0
        for part in parts:
            whole[end : end + len(part)] = part
            end += len(part)
        return float(whole[:end].sum())


def own_prompts(sent: SentPrompts) -> OwnPrompts | None:
    """The prompts of these requests; None where there are none."""
    facts = _Facts.of(sent)
    if not facts.count:
        return None
    shared, known = _shared_by_entry(sent.evidence, facts.entries)
    before = _turns_before(sent) if facts.later else None
    first = _first_requests(sent, facts.prompts)
    own, repeated, begin = np.empty(facts.count), np.empty(facts.count, dtype=bool), 0
    for tokens, entry, turn in sent.blocks("entry", "turn"):
        here = slice(begin, begin + len(tokens))
        again = first[np.searchsorted(facts.prompts, entry + 1j * turn)] != np.arange(here.start, here.stop)
        most = np.minimum(tokens, _LEAST * shared[np.searchsorted(facts.entries, entry)] * tokens + facts.extra)
        if before is not None:
            most = np.where(turn > 0, np.minimum(tokens, before[here]), most)
        own[here], repeated[here] = np.where(again, tokens, most), again
        begin = here.stop
    if sent.evidence.plan.data.cache_bust in _APART:
        repeated[:] = False

    def total(of: Callable[[Floats, slice], Floats]) -> float:
        return sent.total(_parts(sent, of), facts.count)

    pieces = (slice(at, at + _BLOCK) for at in range(0, facts.count, _BLOCK))
    found = OwnPrompts(
        facts.count, sent.total((tokens for (tokens,) in sent.blocks()), facts.count), float(own.sum()), int(repeated.sum()),
        sent.total((own[piece][repeated[piece]] for piece in pieces), facts.count), known,
    )  # fmt: skip
    if sent.mean is not None:
        return found
    return replace(
        found, hits=total(lambda hits, here: hits), beyond=total(lambda hits, here: np.maximum(0.0, hits - own[here])),
        hits_repeated=total(lambda hits, here: hits[repeated[here]]),
    )  # fmt: skip


def _parts(sent: SentPrompts, of: Callable[[Floats, slice], Floats]) -> Iterator[Floats]:
    """What *of* makes of the hits of each block, and of its place."""
    begin = 0
    for _, hits in sent.blocks("usage_cached_tokens"):
        yield of(hits, slice(begin, begin + len(hits)))
        begin += len(hits)


class _Facts(Struct, frozen=True):
    """What is known of all requests together.

    prompts: entry + i turn of each different one, ascending.  entries: likewise.  later: there are later turns.
    extra: tokens that the server counts beyond those of each prompt's text, which may be the same in all prompts.
    """

    count: int
    prompts: NDArray[np.complex128]
    entries: Floats
    later: bool
    extra: float

    @classmethod
    def of(cls, sent: SentPrompts) -> _Facts:
        count, later = 0, False
        prompts, held, held_count = np.empty(0, dtype=np.complex128), list[NDArray[np.complex128]](), 0
        differences: Counter[float] = Counter()
        for tokens, entry, turn, theirs, ours in sent.blocks("entry", "turn", "usage_prompt_tokens", "input_tokens"):
            count, later = count + len(tokens), later or bool((turn > 0).any())
            held.append(np.unique(entry + 1j * turn))
            held_count += len(held[-1])
            if held_count > len(prompts) + _BLOCK:  # so often that each is sorted a few times
                prompts, held, held_count = np.unique(np.concatenate([prompts, *held])), [], 0
            values, counts = np.unique((theirs - ours)[~np.isnan(theirs - ours)], return_counts=True)
            for value, number in zip(values.tolist(), counts.tolist(), strict=True):
                differences[value] += number
        prompts = np.unique(np.concatenate([prompts, *held]))
        return cls(count, prompts, np.unique(prompts.real), later, max(0.0, _median(differences)))


def _median(counts: Counter[float]) -> float:
    """The median of counted values; 0 without any."""
    if not counts:
        return 0.0
    values = sorted(counts)
    ends = np.cumsum([counts[value] for value in values])
    low, high = (values[int(np.searchsorted(ends, rank, "right"))] for rank in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return (low + high) / 2


def _first_requests(sent: SentPrompts, prompts: NDArray[np.complex128]) -> NDArray[np.int64]:
    """The place of the request that was started first, of each prompt."""
    earliest, first, begin = np.full(len(prompts), np.inf), np.full(len(prompts), -1), 0
    for tokens, entry, turn, started in sent.blocks("entry", "turn", "started_ns"):
        places, known = np.searchsorted(prompts, entry + 1j * turn), earliest.copy()
        np.minimum.at(earliest, places, started)
        new = np.flatnonzero((started == earliest[places]) & (started < known[places]))[::-1]
        first[places[new]] = begin + new  # of those that were started at once the first
        begin += len(tokens)
    return first


def _turns_before(sent: SentPrompts) -> Floats:
    """Tokens of the turn before, prompt and answer; infinite where they aren't known.

    The turn before may be anywhere, so that whole columns are in memory.
    """
    names = ("session", "turn", "usage_completion_tokens", "output_tokens", "reasoning_tokens")
    columns = map(np.concatenate, zip(*sent.blocks(*names), strict=True))
    tokens, session, turn, theirs, ours, thoughts = columns
    answers = np.nan_to_num(np.where(np.isnan(theirs), ours + np.nan_to_num(thoughts), theirs), nan=np.inf)
    order = np.lexsort((turn, session))
    before = np.full(len(order), np.inf)
    follows = (session[order][1:] == session[order][:-1]) & (turn[order][1:] == turn[order][:-1] + 1)
    before[1:] = np.where(follows, (tokens + answers)[order][:-1], np.inf)
    found = np.empty(len(order))
    found[order] = before
    return found


def _shared_by_entry(evidence: Evidence, entries: Floats) -> tuple[Floats, bool]:
    """For each entry the share of its first body that another body of the run begins with; and whether they are known."""
    numbers = {int(number) for number in entries.tolist() if number >= 0}
    for phase in evidence.plan.load.phases:
        if phase.index < evidence.phase.index:
            numbers.update(range(phase.first_entry, phase.first_entry + min(phase.entries, _MOST_BODIES)))
    bodies = {number: body for number in sorted(numbers)[:_MOST_BODIES] if (body := evidence.body(number))}
    if not bodies:
        return np.zeros(len(entries)), False
    shares = _shares(list(bodies.items()))
    usual = float(np.mean([shares[number] for number in bodies]))
    return np.array([shares.get(int(number), usual) for number in entries.tolist()]), True


def _shares(bodies: Sequence[tuple[int, bytes]]) -> dict[int, float]:
    """By number the part, 0 to 1, of a body that is the beginning of another one, too."""
    ordered = sorted((body[:_MOST_BYTES], number, len(body)) for number, body in bodies)
    common = [0, *(_common(one[0], other[0]) for one, other in pairwise(ordered)), 0]
    found = {}
    for i, (begin, number, length) in enumerate(ordered):
        most = max(common[i], common[i + 1])
        found[number] = 1.0 if most == len(begin) else most / length
    return found


def _common(one: bytes, other: bytes) -> int:
    """The length of the beginning that both have."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
