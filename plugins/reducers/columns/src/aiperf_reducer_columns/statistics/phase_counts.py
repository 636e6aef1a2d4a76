"""Counts of requests: outcomes, errors by kind, extremes, and what the server said of its own counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import compress

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.sdk.columns import Ints, RecordBatch, reconnects
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.summary import ErrorCount
from msgspec import Struct

from aiperf_reducer_columns.statistics.fold import add_counts
from aiperf_reducer_columns.statistics.server_counts import far_prompts, length_shift

KINDS = (
    "completed", "failed", "cut", "empty", "client_limit", "cancelled", "aborted", "unfinished", "damaged", "overflowed",
)  # fmt: skip
"""Outcomes of a request that was sent."""
FAILED, CUT, EMPTY, CLIENT_LIMIT = 0, 1, 2, 3
"""How a request failed: the column ``fault``."""
MOST = 100
"""Messages of one type and code that are counted apart; likewise types of one code, and codes."""

Counts = dict[str, tuple[int, float]]
"""By error, the JSON of its ErrorDetails: how often, and the first instant in ns since the run's start."""

_KINDS_OF = {
    journal.COMPLETED: 0, journal.ERROR: 1, journal.CANCELLED: 5, journal.ABORTED: 6, journal.UNFINISHED: 7, journal.DAMAGED: 8,
    journal.OVERFLOWED: 9,
}  # fmt: skip
_FAILED_KINDS = ("failed", "cut", "empty", "client_limit", "cancelled")
_MANY = f"more than {MOST} different "
_MORE_REASONS = f"further reasons, beyond {MOST}"
_OPENING = 8
"""Number of a phase's first good requests in ``opening``."""
_WIDER = (("messages", ("type", "code")), ("types of error", ("code",)), ("codes of errors", ()))
"""Names of groups of errors, each wider than the one before, and the fields that the errors of a group share."""
_read = msgspec.json.Decoder(ErrorDetails).decode


def kinds(batch: RecordBatch) -> Ints:
    """The outcome of each request, as an index into KINDS."""
    indices = np.zeros(len(batch), dtype=np.int64)
    outcomes = batch["outcome"]
    for outcome, kind in _KINDS_OF.items():
        indices[outcomes == outcome] = kind
    failed = outcomes == journal.ERROR
    indices[failed] += np.nan_to_num(batch["fault"][failed]).astype(np.int64)
    return indices


def failures(batch: RecordBatch) -> Iterator[tuple[str, int]]:
    """The errors of failed requests, with their rows; a request longer than the context has an error, and is no failure."""
    errors = batch.texts["error"]
    for row in np.flatnonzero(~batch.valid & (batch["outcome"] != journal.OVERFLOWED)).tolist():
        if (error := errors[row]) is not None:
            yield error, row


def counts_of(keys: Ints) -> Iterator[tuple[int, int]]:
    """Each key and its count."""
    present, counts = np.unique(keys, return_counts=True)
    return zip(present.tolist(), counts.tolist(), strict=True)


class Tally(Struct):
    """Requests: the number that started, the outcomes (indices into KINDS) and errors of those that ended."""

    kinds: dict[int, int] = {}
    errors: Counts = {}
    started: int = 0

    @property
    def outcomes(self) -> dict[str, int]:
        """Counts by name, in the order of KINDS; outcomes without requests are left out."""
        return {KINDS[kind]: self.kinds[kind] for kind in sorted(self.kinds)}

    @property
    def valid(self) -> int:
        return self.outcomes.get("completed", 0)

    @property
    def failed(self) -> int:
        """Requests with an error, and cancelled ones."""
        return sum(self.outcomes.get(kind, 0) for kind in _FAILED_KINDS)

    def count_error(self, error: str, at_ns: float) -> None:
        counted(self.errors, error, 1, at_ns)
        self.errors = bounded(self.errors)

    def merge(self, other: Tally) -> None:
        self.started += other.started
        add_counts(self.kinds, other.kinds.items())
        for error, (count, first_ns) in other.errors.items():
            counted(self.errors, error, count, first_ns)
        self.errors = bounded(self.errors)


class PhaseCounts(Tally):
    """The tally of a phase, and extremes.

    Times are in ns since the run's start.  chunks: pieces of content; coalesced: those merged with later ones.
    reasons: why answers ended, good or not, as their servers say it.
    silent: good answers without token counts of the server; unread_usage: those with counts that can't be read; zeroed: those
    with content and a count of 0; clamped: those with more reasoning than output tokens; hidden_reasoning: those with reasoning
    tokens and no reasoning text.
    unreadable: good answers with events that could not be read; unreadable_events: all of these events; unread_first: answers
    with one before all content; unread_first_ns: sum of the times from it to the content.
    whole: good answers that are no stream; whole_failed: complete ones that fail.
    prompt_tokens, cached_tokens: as the server counts, in good answers with a count of cached tokens.  opening: of the first
    good requests, their start, and the time to the first token or the end.
    length_shift, far_prompts: see :mod:`~aiperf_reducer_columns.statistics.server_counts`.
    """

    first_start_ns: float = math.inf
    last_start_ns: float = -math.inf
    last_end_ns: float = -math.inf
    coalesced: int = 0
    answers_begun: int = 0
    merged_first: int = 0
    chunks: int = 0
    reconnected: int = 0
    closed_before_write: int = 0
    unacknowledged: int = 0
    silent: int = 0
    unread_usage: int = 0
    zeroed: int = 0
    unreadable: int = 0
    unreadable_events: int = 0
    unread_first: int = 0
    unread_first_ns: int = 0
    whole: int = 0
    whole_failed: int = 0
    clamped: int = 0
    hidden_reasoning: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    length_shift: int = 0
    far_prompts: int = 0
    opening: list[tuple[float, float]] = []
    reasons: dict[str, int] = {}

    def add(self, batch: RecordBatch) -> None:
        """Count a batch, which is not empty."""
        good, ends, started = batch.valid, batch["ended_ns"], batch["started_ns"]
        prompt, completion = batch["usage_prompt_tokens"], batch["usage_completion_tokens"]
        reasoned, cached = batch["usage_reasoning_tokens"], batch["usage_cached_tokens"]
        at_once = batch["first_output_ns"] == batch["first_token_ns"]
        unread = batch["unread_usage"] == 1
        with_cache = good & ~np.isnan(cached) & ~np.isnan(prompt)
        waits = np.maximum(batch["first_token_ns"] - batch["unreadable_ns"], 0)[good]
        unreadable = np.nan_to_num(batch["unreadable"][good])
        first = np.where(np.isnan(batch["first_token_ns"]), ends, batch["first_token_ns"])
        earliest = np.flatnonzero(good)[np.argsort(started[good], kind="stable")[:_OPENING]]
        no_stream = np.isnan(batch["finish"]) & (batch["events"] == 0)
        status, fault = batch["status"], batch["fault"]
        low, high = batch["first_low_ns"], batch["first_high_ns"]
        complete = (status >= 200) & (status < 300) & ((fault == FAILED) | (fault == EMPTY))
        causes = Counter(reconnects(batch))
        more = PhaseCounts(
            dict(counts_of(kinds(batch))), {}, len(batch), float(started.min()), float(started.max()),
            float(np.fmax.reduce(ends, initial=-math.inf)),
            answers_begun=int(np.isfinite(batch["first_token_ns"]).sum()), merged_first=int((low < high).sum()),
            coalesced=int(batch["coalesced"].sum()), chunks=int(batch.lists("piece_count").values.sum()),
            reconnected=int(((batch["reconnected"] == 1) | (batch["resent"] == 1)).sum()),
            closed_before_write=causes["closed_before_write"], unacknowledged=causes["unacknowledged"],
            silent=int((good & ~unread & np.isnan(prompt) & np.isnan(completion)).sum()),
            unread_usage=int((good & unread).sum()),
            zeroed=int((good & (completion == 0) & np.isnan(batch["output_tokens"])).sum()),
            unreadable=int((unreadable > 0).sum()), unreadable_events=int(unreadable.sum()),
            whole=int((no_stream & good).sum()), whole_failed=int((no_stream & ~good & complete).sum()),
            unread_first=int(np.isfinite(waits).sum()), unread_first_ns=int(np.nansum(waits)),
            clamped=int((good & (reasoned > completion)).sum()), hidden_reasoning=int((good & (reasoned > 0) & at_once).sum()),
            prompt_tokens=int(prompt[with_cache].sum()), cached_tokens=int(cached[with_cache].sum()),
            opening=list(zip(started[earliest].tolist(), (first - started)[earliest].tolist(), strict=True)),
            length_shift=length_shift(batch), far_prompts=far_prompts(batch), reasons=_reasons(batch),
        )  # fmt: skip
        for error, row in failures(batch):
            counted(more.errors, error, 1, float(ends[row]))
        self.merge(more)

    def merge(self, other: Tally) -> None:
        super().merge(other)
        assert isinstance(other, PhaseCounts)
        self.first_start_ns = min(self.first_start_ns, other.first_start_ns)
        self.last_start_ns = max(self.last_start_ns, other.last_start_ns)
        self.last_end_ns = max(self.last_end_ns, other.last_end_ns)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.opening = sorted([*self.opening, *other.opening])[:_OPENING]
        for reason, count in other.reasons.items():
            known = reason if reason in self.reasons or len(self.reasons) < MOST else _MORE_REASONS
            self.reasons[known] = self.reasons.get(known, 0) + count


_SUMS = [field.name for field in msgspec.structs.fields(PhaseCounts) if field.type is int and field.name != "started"]


def _reasons(batch: RecordBatch) -> dict[str, int]:
    """Why answers ended, of the requests that have a record."""
    texts = batch.texts["finish_reason"]
    if not any(texts):
        return {}
    recorded = np.isin(batch["outcome"], (journal.COMPLETED, journal.ERROR, journal.CANCELLED))
    return {reason: count for reason, count in Counter(compress(texts, recorded.tolist())).items() if reason}


def counted(errors: Counts, error: str, count: int, first_ns: float) -> None:
    """Count *error*, in place."""
    known, earliest = errors.get(error, (0, math.inf))
    errors[error] = (known + count, min(earliest, first_ns))


def bounded(errors: Counts) -> Counts:
    """The counts with kinds beyond MOST counted together.

    Grouping depends on all errors together, and a group stays a group: the order of adding and merging changes nothing.
    """
    if len(errors) <= MOST and not any(_MANY in error for error in errors):
        return errors
    narrow = list(errors)
    for what, kept in _WIDER:
        wide = [_widened(error, what, kept) for error in errors]
        members: dict[str, set[str]] = {}
        for group, member in zip(wide, narrow, strict=True):
            members.setdefault(group, set()).add(member)
        grouped: Counts = {}
        for (error, (count, first_ns)), group in zip(errors.items(), wide, strict=True):
            counted(grouped, group if len(members[group]) > MOST or group in errors else error, count, first_ns)
        errors, narrow = grouped, [_widened(error, what, kept) for error in grouped]
    return errors


def listed(errors: Counts) -> tuple[ErrorCount, ...]:
    """Errors in the order of their first instants."""
    ordered = sorted(errors.items(), key=lambda each: each[1][1])
    return tuple(ErrorCount(_read(error), count) for error, (count, _) in ordered)


def _widened(error: str, what: str, kept: tuple[str, ...]) -> str:
    """The group of an error: of all errors with the same fields *kept*."""
    details = _read(error)
    group = ErrorDetails(_MANY + what, **{name: getattr(details, name) for name in kept})
    return msgspec.json.encode(group).decode()
