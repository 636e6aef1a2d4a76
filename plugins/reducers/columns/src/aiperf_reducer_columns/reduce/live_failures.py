"""Failed requests by kind while a run goes on: the commonest are told, however many kinds there are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.snapshot import MOST_FAILURES, LiveFailures
from msgspec import Struct

from aiperf_reducer_columns.statistics.phase_counts import failures

MOST_KINDS = 1_000
"""Kinds of a phase that are counted apart; those that come later count together."""
_LONGEST_TEXT = 200
"""Characters of an error's text."""


class FailureKind(Struct, array_like=True):
    """Failed requests of one type and code.  first_ns, text: of the first, in ns since the run's start."""

    type: str
    code: int | None
    count: int = 0
    first_ns: float = 0.0
    text: str = ""


class FailureKinds(Struct):
    """The failed requests of a phase.  rows: by kind; further: requests of kinds beyond MOST_KINDS."""

    rows: list[FailureKind] = []
    further: int = 0

    def merge(self, other: FailureKinds) -> None:
        known = {(row.type, row.code): row for row in self.rows}
        for row in other.rows:
            mine = known.get((row.type, row.code))
            if mine is not None:
                mine.count += row.count
                if row.first_ns < mine.first_ns:
                    mine.first_ns, mine.text = row.first_ns, row.text
            elif len(self.rows) < MOST_KINDS:
                self.rows.append(row)
            else:
                self.further += row.count
        self.further += other.further

    def commonest(self) -> tuple[tuple[LiveFailures, ...], int]:
        """The commonest kinds, and how many requests failed otherwise."""
        rows = sorted(self.rows, key=lambda row: -row.count)
        told = tuple(LiveFailures(row.type, row.count, row.code, row.text) for row in rows[:MOST_FAILURES])
        return told, self.further + sum(row.count for row in rows[MOST_FAILURES:])


def failure_kinds(batch: RecordBatch) -> FailureKinds:
    """The failed requests of a batch."""
    ends = batch["ended_ns"]
    return kinds_of((error, float(ends[row])) for error, row in failures(batch))


def kinds_of(errors: Iterable[tuple[str, float]]) -> FailureKinds:
    """*errors*: each the JSON of its ErrorDetails, and when it came."""
    found: dict[tuple[str, int | None], FailureKind] = {}
    for error, end_ns in errors:
        details = _details(error)
        kind = details.type or "error", details.code
        row = found.get(kind)
        if row is None or end_ns < row.first_ns:
            before = 0 if row is None else row.count
            row = found[kind] = FailureKind(*kind, before, end_ns, details.message[:_LONGEST_TEXT])
        row.count += 1
    return FailureKinds([*found.values()])


@lru_cache(256)
def _details(error: str) -> ErrorDetails:
    return msgspec.json.decode(error, type=ErrorDetails)
