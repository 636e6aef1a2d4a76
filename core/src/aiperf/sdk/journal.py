"""The files of a run: its journal, the stored data set, and what lies beside them.

Exporters that write more than columns read requests here as they were on the wire; a reducer reads everything.  The names come
from rooms above this one, or from the package that reduces journals, so they are loaded when they are used, as in the door
``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "rundir.int_files": "read_ints",
    "rundir.journal": (
        "ABORTED CANCELLED CHUNKS CHUNK_FIELDS COLUMNS COMPLETED DAMAGED DONE DONE_FIELDS ERROR LOOP MESSAGE NEVER_SENT"
        " OUTCOMES PHASE PLAN SENT SENT_FIELDS TEXT UNFINISHED UNKNOWN Frame RunClock RunEnd columns_path frames hold"
        " load_end load_run numbered pack request_id request_prefix segment_path session_prefix torn write_all"
    ),
    "rundir.previous_results": "set_aside", "rundir.store": "Store",
}  # fmt: skip
_PACKAGES = {
    "Leg": "aiperf_reducer_columns.reduce.rows", "Trace": "aiperf_reducer_columns.reduce.rows",
    "Observation": "aiperf_reducer_columns.reduce.shard_reader", "observations": "aiperf_reducer_columns.reduce.shard_reader",
}  # fmt: skip

__all__ = [
    "ABORTED", "CANCELLED", "CHUNKS", "CHUNK_FIELDS", "COLUMNS", "COMPLETED", "DAMAGED", "DONE", "DONE_FIELDS", "ERROR", "LOOP",
    "MESSAGE", "NEVER_SENT", "OUTCOMES", "PHASE", "PLAN", "SENT", "SENT_FIELDS", "TEXT", "UNFINISHED", "UNKNOWN", "Frame",
    "Leg", "Observation", "RunClock", "RunEnd", "Store", "Trace", "columns_path", "frames", "hold", "load_end", "load_run",
    "numbered", "observations", "pack", "read_ints", "request_id", "request_prefix", "segment_path", "session_prefix",
    "set_aside", "torn", "write_all",
]  # fmt: skip

__getattr__ = door(__name__, _WHERE, packages=_PACKAGES)

if TYPE_CHECKING:
    from aiperf_reducer_columns.reduce.rows import Leg, Trace
    from aiperf_reducer_columns.reduce.shard_reader import Observation, observations

    from aiperf.rundir.int_files import read_ints
    from aiperf.rundir.journal import (  # isort: skip
        ABORTED, CANCELLED, CHUNK_FIELDS, CHUNKS, COLUMNS, COMPLETED, DAMAGED, DONE, DONE_FIELDS, ERROR, LOOP, MESSAGE,
        NEVER_SENT, OUTCOMES, PHASE, PLAN, SENT, SENT_FIELDS, TEXT, UNFINISHED, UNKNOWN, Frame, RunClock, RunEnd, columns_path,
        frames, hold, load_end, load_run, numbered, pack, request_id, request_prefix, segment_path, session_prefix, torn,
        write_all,
    )  # fmt: skip
    from aiperf.rundir.previous_results import set_aside
    from aiperf.rundir.store import Store
