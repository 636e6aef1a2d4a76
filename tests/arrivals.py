"""The ledger of arrivals of runs on one machine and at sites, compared."""

from __future__ import annotations

from typing import Any

from program import Done

_CLOCK_NS = 1_000_000
"""A site's instants are on the run's clock as well as that is known: on this machine to some 10 µs."""


def ledger(done: Done) -> list[dict[str, Any]]:
    return sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: row["n"])


def same_due(done: Done, other: Done, *, count: int | None = None) -> bool:
    """Whether both had the same arrivals, due at the same times behind the first one.  *count*: how many, None for any."""
    rows, twins = ledger(done), ledger(other)
    return (
        [row["n"] for row in rows] == [row["n"] for row in twins]
        and (count is None or len(rows) == count)
        and all(
            abs(row["due_ns"] - rows[0]["due_ns"] - twin["due_ns"] + twins[0]["due_ns"]) < _CLOCK_NS
            for row, twin in zip(rows, twins, strict=True)
        )
    )
