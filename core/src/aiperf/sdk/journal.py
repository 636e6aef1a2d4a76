"""What a run's journal holds, for exporters that write more than columns: requests as they were on the wire.

The names come from rooms above this one, so they are loaded when an exporter uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "reduce.rows": "Leg Trace", "rundir.journal": "CANCELLED COMPLETED ERROR OUTCOMES request_id",
    "rundir.shard_reader": "Observation observations", "rundir.store": "Store",
}  # fmt: skip

__all__ = [
    "CANCELLED", "COMPLETED", "ERROR", "OUTCOMES", "Leg", "Observation", "Store", "Trace", "observations", "request_id",
]  # fmt: skip

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.reduce.rows import Leg, Trace
    from aiperf.rundir.journal import CANCELLED, COMPLETED, ERROR, OUTCOMES, request_id
    from aiperf.rundir.shard_reader import Observation, observations
    from aiperf.rundir.store import Store
