"""Requests as a worker wrote them: the reader of the journal's segments."""

from __future__ import annotations

from aiperf.rundir.shard_reader import (
    DRAINED_BYTES,
    HIDDEN_MOST,
    READ_BYTES,
    STEP_NS,
    JournalRequest,
    News,
    Observation,
    Position,
    Read,
    ShardEvent,
    ShardReader,
    observations,
)

__all__ = [
    "DRAINED_BYTES", "HIDDEN_MOST", "READ_BYTES", "STEP_NS", "JournalRequest", "News", "Observation", "Position", "Read",
    "ShardEvent", "ShardReader", "observations",
]  # fmt: skip
