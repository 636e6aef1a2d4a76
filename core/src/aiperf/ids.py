"""Identifiers of requests and sessions: UUID-shaped, unique per run, and a function of numbers the journal holds.

So the worker sends them without drawing random bytes, and the reducer writes the same ones without being told.
"""

from __future__ import annotations


def request_prefix(run_id: str, shard: int) -> str:
    """Everything of a request's id but its number (12 hex digits)."""
    return f"{run_id[:8]}-{run_id[8:12]}-8{shard & 0xFFF:03x}-a000-"


def request_id(run_id: str, shard: int, request: int) -> str:
    """``X-Request-ID`` of a worker's request (a UUID of version 8, RFC 9562).  *run_id*: 12 hex digits."""
    return f"{request_prefix(run_id, shard)}{request:012x}"


def session_prefix(run_id: str, phase: int) -> str:
    return f"{run_id[:8]}-{run_id[8:12]}-8{phase & 0xFFF:03x}-b000-"


def session_id(run_id: str, phase: int, session: int) -> str:
    """The id all turns of a session share."""
    return f"{session_prefix(run_id, phase)}{session:012x}"
