"""The files of a run: its journal, its reader, the stored data set, and what lies beside them."""

from __future__ import annotations

from aiperf.rundir.int_files import read_ints
from aiperf.rundir.journal import (
    ABORTED,
    CANCELLED,
    CHUNK_FIELDS,
    CHUNKS,
    COLUMNS,
    COMPLETED,
    DAMAGED,
    DONE,
    DONE_FIELDS,
    DRAINED,
    ERROR,
    LOOP,
    MESSAGE,
    NEVER_SENT,
    NODES,
    OUTCOMES,
    OVERFLOWED,
    PHASE,
    PLAN,
    RECORDED,
    RELEASED,
    SENT,
    SENT_FIELDS,
    TEXT,
    TRUNCATED,
    UNFINISHED,
    UNKNOWN,
    Frame,
    RunClock,
    RunEnd,
    columns_path,
    frames,
    hold,
    load_end,
    load_run,
    numbered,
    pack,
    request_id,
    request_prefix,
    segment_path,
    session_prefix,
    stream_id,
    torn,
    write_all,
)
from aiperf.rundir.previous_results import set_aside
from aiperf.rundir.store import Store

__all__ = [
    "ABORTED", "CANCELLED", "CHUNKS", "CHUNK_FIELDS", "COLUMNS", "COMPLETED", "DAMAGED", "DONE", "DONE_FIELDS", "DRAINED",
    "ERROR", "LOOP", "MESSAGE", "NEVER_SENT", "NODES", "OUTCOMES", "OVERFLOWED", "PHASE", "PLAN", "RECORDED",
    "RELEASED", "SENT", "SENT_FIELDS", "TEXT", "TRUNCATED", "UNFINISHED", "UNKNOWN", "Frame", "RunClock", "RunEnd", "Store",
    "columns_path", "frames", "hold", "load_end", "load_run", "numbered", "pack", "read_ints", "request_id", "request_prefix",
    "segment_path", "session_prefix", "set_aside", "stream_id", "torn", "write_all",
]  # fmt: skip
