"""What a line holds, and its JSON Schema.

Every structure here is made and encoded once per request or per value: none takes part in garbage collection.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from aiperf import ErrorDetails
from msgspec import Meta, Struct

WallNs = Annotated[int, Meta(description="Wall clock, ns since 1970.")]


class Metadata(Struct, frozen=True, omit_defaults=True, gc=False):
    """Which request it was, when, and how it ended."""

    session_num: Annotated[int, Meta(description="Number of the request in its phase, as in the reference.")]
    turn_index: Annotated[int, Meta(description="Index of the turn in its conversation.")]
    credit_issued_ns: Annotated[WallNs, Meta(description="When it was due; when it was started, where nothing was scheduled.")]
    request_start_ns: WallNs
    request_end_ns: Annotated[WallNs, Meta(description="Last bytes of the answer; without any, when it was given up.")]
    benchmark_phase: Annotated[str, Meta(description="warmup or profiling.")]
    phase_index: int
    phase_name: str
    phase_kind: Annotated[str, Meta(description="warmup or profiling.")]
    was_cancelled: bool
    context_overflow_skip: bool
    agent_depth: int
    due_ns: Annotated[WallNs, Meta(description="When it was due, where something was scheduled.")] | None = None
    request_ack_ns: Annotated[WallNs, Meta(description="Status line and headers were in.")] | None = None
    cancellation_time_ns: WallNs | None = None
    conversation_num: Annotated[int, Meta(description="Number of the session in its phase.")] | None = None
    profiling_index: Annotated[int, Meta(description="Number of the profiling phase; absent in warmup.")] | None = None
    x_request_id: str | None = None
    x_correlation_id: Annotated[str, Meta(description="The session's, shared by all its turns.")] | None = None
    conversation_id: Annotated[str, Meta(description="session_id of inputs.json.")] | None = None
    worker_id: str | None = None
    record_processor_id: str | None = None
    root_correlation_id: str | None = None


class Value(Struct, frozen=True, gc=False):
    """One metric of one request, in its display unit."""

    value: float | list[float]
    unit: str


class Record(Struct, frozen=True, omit_defaults=True):
    """A request."""

    metadata: Metadata
    metrics: dict[str, Value]
    error: ErrorDetails | None = None


def schema() -> dict[str, Any]:
    """The JSON Schema of a line; the package carries it as ``profile_export.schema.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of profile_export.jsonl",
        **msgspec.json.schema(Record),
    }
