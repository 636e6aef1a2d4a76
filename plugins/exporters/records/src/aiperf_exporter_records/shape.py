"""What a line holds, and its JSON Schema.

Traces and intervals are made and encoded once per request or per value: none takes part in garbage collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from aiperf import ErrorDetails
from aiperf.sdk.columns import RECONNECTS
from msgspec import Meta, Struct

WallNs = Annotated[int, Meta(description="Wall clock, ns since 1970.")]
Reconnected = Annotated[str, Meta(pattern=f"^({'|'.join(RECONNECTS)})$", description="Why it went to a new connection.")]


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
    x_correlation_id: Annotated[str, Meta(description="The session's, or of a tree the stream's.")] | None = None
    conversation_id: Annotated[str, Meta(description="session_id of inputs.json.")] | None = None
    worker_id: str | None = None
    site: Annotated[str, Meta(description="Of the worker, in a run with sites.")] | None = None
    record_processor_id: str | None = None
    parent_correlation_id: Annotated[str, Meta(description="Of the conversation that started this one.")] | None = None
    root_correlation_id: str | None = None
    lane: Annotated[int, Meta(description="Of its tree, where trees are in lanes.")] | None = None
    held_by_correlation_id: Annotated[str, Meta(description="Of the conversation for whose turn it waited.")] | None = None
    held_by_turn_index: Annotated[int, Meta(description="Of that turn; its end let the request go.")] | None = None
    source_trace_id: Annotated[str, Meta(description="Of a replayed trace, its id.")] | None = None
    source_outer_idx: Annotated[int, Meta(description="Number of its record among those of the trace.")] | None = None
    source_inner_idx: Annotated[int, Meta(description="Number within that record, of a subagent.")] | None = None
    source_kind: Annotated[str, Meta(description="Of the record, such as weka_main or weka_subagent.")] | None = None
    reconnected: Reconnected | None = None
    finish_reason: Annotated[str, Meta(description="Of the answer's end, as the server sent it.")] | None = None
    repeat: Annotated[int, Meta(description="How often its problem was asked before, where it is repeated.")] | None = None


class Intervals(Struct, frozen=True, omit_defaults=True, gc=False):
    """Bounds of a metric's estimates: every percentile of the true values lies between those of the bounds.

    Arrays that belong together, and nothing that says nothing: a busy client merges most reads, and an object for each estimate
    made the file two and a half times as long.
    """

    upper: list[float]
    lower: Annotated[list[float], Meta(description="Absent where all are 0.")] = []
    at: Annotated[list[int], Meta(description="Places of the estimates in the list; absent where all are estimates.")] = []
    slack: Annotated[float, Meta(description="How far their sum may be off; absent where it is known.")] | None = None


class Value(Struct, frozen=True, omit_defaults=True, gc=False):
    """One metric of one request, in its display unit.  intervals: of values that are estimates, because reads were merged."""

    value: float | list[float]
    unit: str
    intervals: Intervals | None = None


Read = Annotated[Sequence[int], Meta(min_length=2, max_length=2, description="Wall clock in ns, bytes of body.")]


class TraceData(Struct, frozen=True, omit_defaults=True, gc=False):
    """A request's HTTP exchange; absent is what it never came to."""

    trace_type: Annotated[str, Meta(description="Name of the transport.")]
    request_headers: Annotated[dict[str, str], Meta(description="Values of secret ones are redacted.")] | None = None
    connection_pool_wait_start_ns: WallNs | None = None
    connection_pool_wait_end_ns: WallNs | None = None
    dns_lookup_start_ns: WallNs | None = None
    dns_lookup_end_ns: WallNs | None = None
    tcp_connect_start_ns: WallNs | None = None
    tcp_connect_end_ns: Annotated[WallNs, Meta(description="TLS handshake included.")] | None = None
    connection_reused_ns: WallNs | None = None
    request_send_start_ns: Annotated[WallNs, Meta(description="The connection was ready.")] | None = None
    request_headers_sent_ns: Annotated[WallNs, Meta(description="First byte handed to the kernel.")] | None = None
    request_send_end_ns: Annotated[WallNs, Meta(description="Last byte handed to the kernel.")] | None = None
    request_bytes_total: Annotated[int, Meta(description="Bytes of body.")] | None = None
    response_status_code: int | None = None
    response_reason: str | None = None
    response_headers: Annotated[dict[str, str], Meta(description="Values of secret ones are redacted.")] | None = None
    response_trailers: Annotated[dict[str, str], Meta(description="Behind the answer; secrets redacted.")] | None = None
    response_headers_received_ns: WallNs | None = None
    response_receive_start_ns: Annotated[WallNs, Meta(description="First bytes of the body.")] | None = None
    response_receive_end_ns: WallNs | None = None
    response_chunks: list[Read] = []
    response_chunks_count: int = 0
    response_bytes_total: Annotated[int, Meta(description="Bytes of body.")] | None = None
    error_timestamp_ns: WallNs | None = None
    blocked_ns: int | None = None
    dns_lookup_ns: int | None = None
    connecting_ns: int | None = None
    sending_ns: int | None = None
    waiting_ns: int | None = None
    receiving_ns: int | None = None
    duration_ns: int | None = None


class Record(Struct, frozen=True, omit_defaults=True):
    """A request."""

    metadata: Metadata
    metrics: dict[str, Value]
    trace_data: TraceData | None = None
    error: ErrorDetails | None = None


def schema() -> dict[str, Any]:
    """The JSON Schema of a line; the package carries it as ``profile_export.schema.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of profile_export.jsonl",
        **msgspec.json.schema(Record),
    }
