"""Identifiers of requests and sessions: UUID-shaped, unique per run, and a function of numbers the journal holds.

The worker sends them without drawing random bytes, and the reducer computes the same ones.
"""

from __future__ import annotations


def request_prefix(run_id: str, shard: int) -> str:
    """A request's id without its number (12 hex digits)."""
    return f"{run_id[:8]}-{run_id[8:12]}-8{shard & 0xFFF:03x}-a000-"


def request_id(run_id: str, shard: int, request: int) -> str:
    """``X-Request-ID`` of a worker's request (a UUID of version 8, RFC 9562).  *run_id*: 12 hex digits."""
    return f"{request_prefix(run_id, shard)}{request:012x}"


def session_prefix(run_id: str, phase: int) -> str:
    """The id that all turns of a session share, without its number (12 hex digits)."""
    return f"{run_id[:8]}-{run_id[8:12]}-8{phase & 0xFFF:03x}-b000-"
