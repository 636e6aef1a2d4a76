"""The requests of one tree after the other, from those of a run: a part of all sessions at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from aiperf import RawValues
from aiperf.parts.journal import COMPLETED, RECORDED
from aiperf.sdk.columns import Floats
from aiperf.sdk.trees import PlannedTree

COLUMNS = (
    "session", "entry", "stream", "turn", "started_ns", "ended_ns", "last_byte_ns", "first_token_ns", "outcome",
    "input_tokens", "output_tokens", "reasoning_tokens", "usage_prompt_tokens", "usage_cached_tokens", "prefix_blocks",
    "prefix_hits",
)  # fmt: skip
REQUESTS = 50_000
"""Requests whose trees are in memory at once, but for a tree that has more."""
_BLOCK = 16_384
"""Requests that are read together."""
_PLANS = 256
"""Entries whose plans are kept."""


class Request(NamedTuple):
    """A request of a tree; *turn* counts in its stream.  Times are in ns since the run's start.

    end_ns: the last bytes, or when it was over; NaN where it never was.  over: it was answered or failed.  ttft_ns, and tokens:
    NaN where there is none.  good: it was answered well.
    """

    stream: int
    turn: int
    start_ns: float
    end_ns: float
    over: bool
    good: bool
    ttft_ns: float
    tokens: float
    prompt: float
    cached: float
    blocks: float
    hits: float


class Tree(NamedTuple):
    """A tree's requests by stream, each in the order of its turns, and its plan.  last_start_ns: when the phase's last request
    started."""

    plan: PlannedTree
    streams: dict[int, list[Request]]
    last_start_ns: float

    @property
    def requests(self) -> list[Request]:
        """All of them, by start."""
        every = (each for stream in self.streams.values() for each in stream)
        return sorted(every, key=lambda each: (each.start_ns, each.stream, each.turn))


def trees_of(kept: RawValues) -> Iterator[Tree]:
    """The trees of a phase, by their sessions' numbers."""
    if not len(kept):
        return
    last_start_ns, blocks, edges = _overview(kept)
    plans: dict[int, PlannedTree] = {}
    for low, high in pairwise([*edges, np.inf]):
        tables = [kept.rows(0, 0)]
        for first, least, most in blocks:
            if least < high and most >= low:
                rows = kept.rows(first, first + _BLOCK)
                wanted = (rows["session"] >= low) & (rows["session"] < high)
                tables.append({name: column[wanted] for name, column in rows.items()})
        whole = {name: np.concatenate([table[name] for table in tables]) for name in COLUMNS}
        yield from _grouped(whole, kept, plans, last_start_ns)


def _overview(kept: RawValues) -> tuple[float, list[tuple[int, float, float]], list[float]]:
    """The last start; first number, least and greatest session of each block; the sessions at which parts begin."""
    last, blocks, sessions = -np.inf, [], np.empty(len(kept))
    for first in range(0, len(kept), _BLOCK):
        rows = kept.rows(first, first + _BLOCK)
        numbers = rows["session"]
        sessions[first : first + len(numbers)] = numbers
        blocks.append((first, float(numbers.min()), float(numbers.max())))
        last = max(last, float(np.nanmax(rows["started_ns"], initial=-np.inf)))
    sessions.sort()
    return last, blocks, np.unique(sessions[::REQUESTS]).tolist()


def _grouped(
    columns: Mapping[str, Floats], kept: RawValues, plans: dict[int, PlannedTree], last_start_ns: float
) -> Iterator[Tree]:
    order = np.lexsort((columns["turn"], columns["stream"], columns["session"]))
    ordered = {name: column[order] for name, column in columns.items()}
    edges = np.flatnonzero(np.diff(ordered["session"], prepend=np.nan, append=np.nan) != 0).tolist()
    requests = _requests(ordered)
    entries = ordered["entry"]
    for begin, end in pairwise(edges):
        entry = int(entries[begin])
        if entry not in plans:
            if len(plans) >= _PLANS:
                plans.clear()
            plans[entry] = kept.tree(entry)
        streams: dict[int, list[Request]] = {}
        for request in requests[begin:end]:
            streams.setdefault(request.stream, []).append(request)
        yield Tree(plans[entry], streams, last_start_ns)


def _requests(columns: Mapping[str, Floats]) -> list[Request]:
    outcome, last = columns["outcome"], columns["last_byte_ns"]
    over = np.isin(outcome, RECORDED)
    ends = np.where(over & ~np.isnan(last), last, columns["ended_ns"])
    answer = np.nan_to_num(columns["output_tokens"]) + np.nan_to_num(columns["reasoning_tokens"])
    numbers = (
        columns["stream"].astype(np.int64), columns["turn"].astype(np.int64), columns["started_ns"], ends, over,
        outcome == COMPLETED, columns["first_token_ns"] - columns["started_ns"],
        np.nan_to_num(columns["input_tokens"]) + answer, columns["usage_prompt_tokens"], columns["usage_cached_tokens"],
        columns["prefix_blocks"], columns["prefix_hits"],
    )  # fmt: skip
    return list(map(Request, *(column.tolist() for column in numbers)))
