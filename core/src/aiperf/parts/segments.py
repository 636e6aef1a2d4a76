"""Requests as a worker wrote them: the reader of the journal's segments."""

from __future__ import annotations

from aiperf.rundir.forks import ForkedTurns
from aiperf.rundir.observations import Observation, observations
from aiperf.rundir.shard_reader import (
    DRAINED_BYTES,
    HIDDEN_MOST,
    READ_BYTES,
    STEP_NS,
    JournalRequest,
    News,
    Position,
    Read,
    ShardEvent,
    ShardReader,
    is_merged,
    last_is_hidden,
)

__all__ = [
    "DRAINED_BYTES", "HIDDEN_MOST", "READ_BYTES", "STEP_NS", "ForkedTurns", "JournalRequest", "News", "Observation",
    "Position", "Read", "ShardEvent", "ShardReader", "is_merged", "last_is_hidden", "observations",
]  # fmt: skip
