"""What a perfect prefix cache could have had of each prompt from the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from aiperf import Evidence
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.columns import Floats
from msgspec import Struct
from numpy.typing import NDArray

_LEAST, _MOST_BODIES, _MOST_BYTES = 1.25, 20_000, 1 << 16
"""A beginning may have more tokens for its bytes than the rest; bodies that are compared, and bytes of each."""
_APART = (CacheBust.SYSTEM_PREFIX, CacheBust.FIRST_TURN_PREFIX)
"""Markers that make one prompt of two sessions two prompts for a cache."""


class OwnPrompts(Struct, frozen=True):
    """The prompts of the requests that were sent, one value each.

    tokens: of the prompt.  own: the most that a cache could have of it from this run.  repeated: sent before in this run, not
    behind a marker of another session.
    known: the bodies of first turns are known, so that *own* has what they share.
    """

    tokens: Floats
    own: Floats
    repeated: NDArray[np.bool_]
    known: bool


def own_prompts(evidence: Evidence, rows: NDArray[np.bool_], tokens: Floats) -> OwnPrompts:
    """The prompts of the requests *rows* of the phase, with their *tokens*."""
    entry, turn, session, started = (evidence.column(name)[rows] for name in ("entry", "turn", "session", "started_ns"))
    repeated = _repeated(entry, turn, started)
    extra = _added_by_the_server(evidence, rows)
    shared, known = _shared_by_entry(evidence, entry)
    own = np.minimum(tokens, _LEAST * shared * tokens + extra)
    later = turn > 0
    if later.any():
        own = np.where(later, np.minimum(tokens, _turns_before(evidence, rows, session, turn, tokens)), own)
    marked = evidence.plan.data.cache_bust in _APART
    return OwnPrompts(tokens, np.where(repeated, tokens, own), repeated & (not marked), known)


def _repeated(entry: Floats, turn: Floats, started: Floats) -> NDArray[np.bool_]:
    """Whether the same turn of the same entry was started before."""
    order = np.lexsort((started, turn, entry))
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (entry[order][1:] == entry[order][:-1]) & (turn[order][1:] == turn[order][:-1])
    found = np.zeros(len(order), dtype=bool)
    found[order] = again
    return found


def _added_by_the_server(evidence: Evidence, rows: NDArray[np.bool_]) -> float:
    """Tokens that the server counts beyond those of each prompt's text, which may be the same in all prompts."""
    theirs, ours = evidence.column("usage_prompt_tokens")[rows], evidence.column("input_tokens")[rows]
    differences = theirs - ours
    known = differences[~np.isnan(differences)]
    return max(0.0, float(np.median(known))) if len(known) else 0.0


def _turns_before(
    evidence: Evidence, rows: NDArray[np.bool_], session: Floats, turn: Floats, tokens: Floats
) -> Floats:
    """Tokens of the turn before, prompt and answer; infinite where they aren't known."""
    theirs, ours, thoughts = (
        evidence.column(name)[rows] for name in ("usage_completion_tokens", "output_tokens", "reasoning_tokens")
    )
    answers = np.nan_to_num(np.where(np.isnan(theirs), ours + np.nan_to_num(thoughts), theirs), nan=np.inf)
    order = np.lexsort((turn, session))
    before = np.full(len(order), np.inf)
    follows = (session[order][1:] == session[order][:-1]) & (turn[order][1:] == turn[order][:-1] + 1)
    before[1:] = np.where(follows, (tokens + answers)[order][:-1], np.inf)
    found = np.empty(len(order))
    found[order] = before
    return found


def _shared_by_entry(evidence: Evidence, entry: Floats) -> tuple[Floats, bool]:
    """For each request the share of its first body that another body of the run begins with; and whether they are known."""
    used, place = np.unique(entry, return_inverse=True)
    numbers = {int(number) for number in used.tolist() if number >= 0}
    for phase in evidence.plan.load.phases:
        if phase.index < evidence.phase.index:
            numbers.update(range(phase.first_entry, phase.first_entry + min(phase.entries, _MOST_BODIES)))
    bodies = {number: body for number in sorted(numbers)[:_MOST_BODIES] if (body := evidence.body(number))}
    if not bodies:
        return np.zeros(len(entry)), False
    shares = _shares(list(bodies.items()))
    usual = float(np.mean([shares[number] for number in bodies]))
    by_entry = np.array([shares.get(int(number), usual) for number in used.tolist()])
    return by_entry[place], True


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
