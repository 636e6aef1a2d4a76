"""Counts of a phase's requests: outcomes, errors, extremes, and what the server said of its own counts."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from aiperf.sdk.columns import RecordBatch
from aiperf.statistics.error_kinds import bounded, counted, merged
from aiperf.statistics.fold import add_counts
from aiperf.statistics.grouped import counts_of, kinds

_OPENING = 8
"""Number of a phase's first good requests in ``opening``."""
_SUMS = (
    "coalesced", "instants", "reconnected", "silent", "clamped", "hidden_reasoning", "prompt_tokens", "cached_tokens",
)  # fmt: skip


class PhaseCounts(Struct):
    """Counts of a phase's requests by outcome and by error (how often, first instant), and extremes.

    Times are in ns since the run's start.  instants: distinct arrivals of content; coalesced: pieces merged into them.
    kinds: counts by :data:`aiperf.statistics.grouped.KINDS`.
    silent: good answers without token counts of the server; clamped: those with more reasoning than output tokens;
    hidden_reasoning: those with reasoning tokens and no reasoning text.  prompt_tokens, cached_tokens: as the server counts, in
    good answers with a count of cached tokens.  opening: of the first good requests, their start, and the time to the first
    token or the end.
    """

    outcomes: dict[int, int] = {}
    kinds: dict[int, int] = {}
    errors: dict[str, tuple[int, float]] = {}
    first_start_ns: float = math.inf
    last_start_ns: float = -math.inf
    last_end_ns: float = -math.inf
    coalesced: int = 0
    instants: int = 0
    reconnected: int = 0
    silent: int = 0
    clamped: int = 0
    hidden_reasoning: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    opening: list[tuple[float, float]] = []

    def add(self, batch: RecordBatch) -> None:
        add_counts(self.outcomes, counts_of(batch["outcome"].astype(np.int64)))
        add_counts(self.kinds, counts_of(kinds(batch)))
        ends = batch["ended_ns"]
        for i, error in enumerate(batch.texts["error"]):
            if error is not None:
                counted(self.errors, error, 1, float(ends[i]))
        self.errors = bounded(self.errors)
        self.first_start_ns = min(self.first_start_ns, float(np.nanmin(batch["started_ns"])))
        self.last_start_ns = max(self.last_start_ns, float(np.nanmax(batch["started_ns"])))
        if not np.isnan(ends).all():
            self.last_end_ns = max(self.last_end_ns, float(np.nanmax(ends)))
        self.coalesced += int(batch["coalesced"].sum())
        self.instants += len(batch.lists("chunk_ns").values)
        prompt, completion = batch["usage_prompt_tokens"], batch["usage_completion_tokens"]
        self.silent += int((batch.valid & np.isnan(prompt) & np.isnan(completion)).sum())
        reasoned = batch["usage_reasoning_tokens"]
        self.clamped += int((batch.valid & (reasoned > completion)).sum())
        at_once = batch["first_output_ns"] == batch["first_token_ns"]
        self.hidden_reasoning += int((batch.valid & (reasoned > 0) & at_once).sum())
        with_cache = batch.valid & ~np.isnan(batch["usage_cached_tokens"]) & ~np.isnan(prompt)
        self.prompt_tokens += int(prompt[with_cache].sum())
        self.cached_tokens += int(batch["usage_cached_tokens"][with_cache].sum())
        self._open(batch)
        self.reconnected += int(batch["reconnected"].sum())

    def _open(self, batch: RecordBatch) -> None:
        started, first = batch["started_ns"][batch.valid], batch["first_token_ns"][batch.valid]
        took = np.where(np.isnan(first), batch["ended_ns"][batch.valid], first) - started
        earliest = np.argsort(started, kind="stable")[:_OPENING]
        these = zip(started[earliest].tolist(), took[earliest].tolist(), strict=True)
        self.opening = sorted([*self.opening, *these])[:_OPENING]

    def merge(self, other: PhaseCounts) -> None:
        add_counts(self.outcomes, other.outcomes.items())
        add_counts(self.kinds, other.kinds.items())
        self.errors = merged(self.errors, other.errors)
        self.first_start_ns = min(self.first_start_ns, other.first_start_ns)
        self.last_start_ns = max(self.last_start_ns, other.last_start_ns)
        self.last_end_ns = max(self.last_end_ns, other.last_end_ns)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.opening = sorted([*self.opening, *other.opening])[:_OPENING]
