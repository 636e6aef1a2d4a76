"""``trace_data``: each request's HTTP exchange, as ``--export-http-trace`` asks for it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from aiperf import Column, RecordBatch, Target, integers
from aiperf.sdk.columns import WireTrace
from numpy.typing import NDArray

from aiperf_exporter_records.shape import TraceData

_DERIVED = {
    "blocked_ns": "http_req_blocked",
    "dns_lookup_ns": "http_req_dns_lookup",
    "connecting_ns": "http_req_connecting",
    "sending_ns": "http_req_sending",
    "waiting_ns": "http_req_waiting",
    "receiving_ns": "http_req_receiving",
    "duration_ns": "http_req_duration",
}
"""Durations, and the metrics that define them; one that isn't installed has no field."""

NEEDED = (
    "started_ns", "connected_ns", "sent_ns", "sent_end_ns", "ack_ns", "first_byte_ns", "last_byte_ns", "ended_ns", "status",
    "bytes_sent", "bytes_received", "dns_ns", "connect_ns", "tls_ns", "reused",
)  # fmt: skip
"""Columns that this takes."""

_decode = msgspec.json.Decoder(WireTrace).decode


def traces(batch: RecordBatch, values: Mapping[str, Column], target: Target) -> list[TraceData | None]:
    """One per request of the batch; none at all where the run keeps no traces."""
    texts = batch.texts.get("trace")
    if texts is None:
        return []
    columns = _stamps(batch, target.started_wall_ns)
    columns |= {name: integers(values[tag]) for name, tag in _DERIVED.items() if tag in values}  # type: ignore[arg-type]  # none is a list
    columns |= {
        "request_bytes_total": integers(batch["bytes_sent"]),
        "response_status_code": integers(batch["status"]),
        "response_bytes_total": integers(batch["bytes_received"]),
    }
    kind = str(target.config.get("endpoint", {}).get("transport", "kernel"))
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return [_trace(kind, text, row, target.started_wall_ns) for text, row in zip(texts, rows, strict=True)]


def _stamps(batch: RecordBatch, wall_ns: int) -> dict[str, list[int | None]]:
    """Instants as wall-clock ns.  Name lookup, connecting and handshake follow each other up to the ready connection."""
    fresh = np.where(batch["reused"] == 0, batch["connected_ns"], np.nan)
    connecting = fresh - batch["connect_ns"] - batch["tls_ns"]
    looking = np.where(batch["dns_ns"] > 0, connecting - batch["dns_ns"], np.nan)
    failed = np.where(batch.valid, np.nan, batch["ended_ns"])
    reused = np.where(batch["reused"] == 1, batch["connected_ns"], np.nan)
    instants: dict[str, NDArray[np.float64]] = {
        "connection_pool_wait_start_ns": batch["started_ns"],
        "connection_pool_wait_end_ns": np.fmin(np.fmin(looking, connecting), batch["connected_ns"]),
        "dns_lookup_start_ns": looking,
        "dns_lookup_end_ns": np.where(np.isnan(looking), np.nan, connecting),
        "tcp_connect_start_ns": connecting,
        "tcp_connect_end_ns": fresh,
        "connection_reused_ns": reused,
        "request_send_start_ns": batch["connected_ns"],
        "request_headers_sent_ns": batch["sent_ns"],
        "request_send_end_ns": batch["sent_end_ns"],
        "response_headers_received_ns": batch["ack_ns"],
        "response_receive_start_ns": batch["first_byte_ns"],
        "response_receive_end_ns": batch["last_byte_ns"],
        "error_timestamp_ns": failed,
    }
    return {name: integers(column, wall_ns) for name, column in instants.items()}


def _trace(kind: str, text: str | None, known: dict[str, int | None], wall_ns: int) -> TraceData:
    said = WireTrace() if text is None else _decode(text)
    return TraceData(
        trace_type=kind,
        request_headers=said.request_headers or None,
        response_reason=said.reason,
        response_headers=said.response_headers or None,
        response_trailers=said.trailers or None,
        response_chunks=[(at_ns + wall_ns, size) for at_ns, size in said.reads],
        response_chunks_count=len(said.reads),
        **known,
    )
