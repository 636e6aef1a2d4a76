"""The description of the routes by OpenAPI 3.1: what each answers, as JSON Schema.  Tests hold every answer to it."""

from __future__ import annotations

from functools import cache
from typing import Any

from aiperf_pages.assets import Body, body

from aiperf_live_api.board import JSON, encode
from aiperf_live_api.documents import STATISTICS

VERSION = "1"

Schema = dict[str, Any]


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


TEXT, NUMBER, WHOLE, TRUTH = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))
NO_TEXT, NO_NUMBER, NO_WHOLE, NO_TRUTH = map(_or_null, ("string", "number", "integer", "boolean"))
_ANY: Schema = {"type": "object"}


def _object(fields: dict[str, Schema], *, optional: tuple[str, ...] = (), closed: bool = True) -> Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": not closed}


def _each(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _fields(kinds: dict[str, str]) -> dict[str, Schema]:
    """By kind, the names of fields, separated by blanks; a kind with ``?`` may be null."""
    made = {}
    for kind, names in kinds.items():
        for name in names.split():
            made[name] = _or_null(kind[:-1]) if kind.endswith("?") else {"type": kind}
    return made


_PHASE = _fields({
    "string": "phase phase_name phase_kind status",
    "integer": "phase_index requests_sent requests_completed request_errors success_records error_records in_flight",
    "integer?": "profiling_index start_ns sent_end_ns requests_end_ns baseline_start_ns baseline_end_ns total_expected_requests"
    " expected_num_sessions final_requests_sent final_requests_completed final_requests_cancelled final_request_errors"
    " final_sent_sessions final_completed_sessions final_cancelled_sessions requests_cancelled sent_sessions completed_sessions"
    " cancelled_sessions total_session_turns records_end_ns last_update_ns due late",
    "number?": "expected_duration_sec expected_grace_period_sec requests_per_second records_per_second requests_eta_sec"
    " records_eta_sec share",
    "number": "elapsed_s", "boolean": "was_cancelled", "boolean?": "timeout_triggered grace_period_timeout_triggered",
})  # fmt: skip
_RUN_FIELDS = {
    "benchmark_id": NO_TEXT, "sweep_id": TEXT, "random_seed": NO_WHOLE, "trial": NO_WHOLE, "run_label": TEXT,
    "variation_label": TEXT, "variation_index": WHOLE, "variation_values": _ANY, "cli_command": NO_TEXT,
}  # fmt: skip
_STATISTICS = {name: WHOLE if name == "count" else NUMBER for name in STATISTICS}
_OBJECTIVE = _fields({"string": "title tag", "number?": "bound", "integer": "judged met recent_judged recent_met"})
_TASKS = _fields({"integer": "total failed completed"})
_RESULTS = {
    **_fields({
        "integer": "completed successful_request_count error_request_count", "boolean": "was_cancelled is_complete",
        "integer?": "total_expected start_ns end_ns", "string?": "incomplete_reason",
    }),
    "records": _list(_ANY), "warmup_records": _list(_ANY), "timeslices": _maybe(_list(_ANY)), "error_summary": _list(_ANY),
}  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Problem": _object({"detail": TEXT}),
    "Run": _object(_RUN_FIELDS, optional=tuple(_RUN_FIELDS)),
    "Config": _ANY,
    "Step": _object({
        "what": TEXT, "elapsed_s": NUMBER, "done": NO_WHOLE, "total": NO_WHOLE, "unit": TEXT, "line": TEXT,
    }),
    "Phase": _object(_PHASE),
    "Progress": _object({
        "phases": _each(_ref("Phase")),
        "workers": _each(WHOLE), "results_exported": TRUTH, "system_state": TEXT, "step": _maybe(_ref("Step")),
    }),
    "Statistics": _object(_STATISTICS, optional=STATISTICS, closed=False),
    "Metric": _object(
        {"header": TEXT, "unit": TEXT, "recent": _ref("Statistics"), **_STATISTICS}, optional=("recent", *STATISTICS),
        closed=False,
    ),
    "Objective": _object(_OBJECTIVE),
    "Failures": _object({"type": TEXT, "count": WHOLE, "code": NO_WHOLE, "text": TEXT}),
    "Verdict": _object({"verdict": TEXT, "reasons": _list(TEXT), "notes": _list(TEXT), "at_s": NUMBER}),
    "Delays": _object(_fields({"number?": "slip_ms loop_lag_ms client_error_ms"})),
    "Metrics": _object({
        "aiperf_version": TEXT, "benchmark_id": NO_TEXT, "model": NO_TEXT, "endpoint_type": NO_TEXT, "streaming": NO_TRUTH,
        "concurrency": NO_WHOLE, "request_rate": NO_NUMBER, "metrics": _each(_ref("Metric")), "phase": NO_TEXT,
        "good": _maybe(_ref("Objective")), "objectives": _maybe(_list(_ref("Objective"))),
        "failures": _maybe(_list(_ref("Failures"))), "further_failures": NO_WHOLE, "verdict": _maybe(_ref("Verdict")),
        "delays": _maybe(_ref("Delays")),
    }),
    "Tasks": _object(_TASKS),
    "Worker": _object({
        "worker_id": TEXT, "task_stats": _ref("Tasks"),
        "processing_stats": _object({"processed": NO_WHOLE, "errors": NO_WHOLE}),
        "health": _maybe(_object({"pid": WHOLE, "cpu_usage": NO_NUMBER, "memory_usage": NO_WHOLE})),
        "status": {"enum": ["healthy", "high_load", "error", "idle", "stale"]}, "startup_state": {"type": "null"},
        "startup_state_updated_ns": {"type": "null"}, "in_flight": WHOLE, "received_bytes": NO_WHOLE,
        "last_update_ns": NO_WHOLE, "site": NO_TEXT,
    }),
    "WorkerGroup": _object({
        "group_id": TEXT, "status": TEXT, "startup_state": {"type": "null"}, "declared_workers": WHOLE, "ready_workers": WHOLE,
        "health": {"type": "null"}, "task_stats": _ref("Tasks"), "workers": _each(_ref("Worker")), "last_update_ns": NO_WHOLE,
    }),
    "Workers": _object({"workers": _each(_ref("Worker")), "worker_groups": _each(_ref("WorkerGroup"))}),
    "ServerSeries": _object({"labels": _each(TEXT), "value": NO_NUMBER, "at_ns": WHOLE}),
    "Server": _object({
        "endpoint_url": TEXT, "source": TEXT,
        "metrics": _each(_object({"type": TEXT, "unit": TEXT, "series": _list(_ref("ServerSeries"))})),
    }),
    "ServerMetrics": _object(
        {"endpoint_summaries": _each(_ref("Server")), "further_series": WHOLE, "message": TEXT}, optional=("message",)
    ),
    "Finish": _object({
        "status": {"enum": ["complete", "cancelled", "incomplete"]}, "reason": TEXT, "code": NO_WHOLE, "files": _list(TEXT),
        "verdict": _maybe(_object({"verdict": TEXT, "reasons": _list(TEXT), "notes": _list(TEXT)})),
    }),
    "Results": _object({
        "status": {"enum": ["running", "complete", "cancelled", "incomplete"]},
        "results": _maybe(_object({"results": _object(_RESULTS), "errors": _list(_ANY)})), "finish": _maybe(_ref("Finish")),
    }),
    "Files": _object({
        "files": _list(_object({"name": TEXT, "size": WHOLE})), "ready": TRUTH, "processing": TRUTH, "partial": TRUTH,
        "failed_exporters": _list(TEXT),
    }),
    "HistorySeries": _object({
        "kind": {"enum": ["counter", "gauge"]}, "values": _list(NO_NUMBER), "title": TEXT, "unit": TEXT, "source": TEXT,
        "target": TEXT, "labels": TEXT,
    }, optional=("title", "unit", "source", "target", "labels")),
    "History": _object({"times": _list(NUMBER), "series": _each(_ref("HistorySeries")), "left_out": WHOLE}),
    "Asked": _object({"status": {"enum": ["stopping", "cancelling"]}, "detail": TEXT}),
    "ShuttingDown": _object({"status": TEXT}),
}  # fmt: skip

_ROUTES = {
    "/api/run": ("Run", "What tells the run from others.", (503,)),
    "/api/config": ("Config", "The configuration, without secrets.", (503,)),
    "/api/progress": ("Progress", "Phases, workers, and what the run does.", ()),
    "/api/metrics": ("Metrics", "Every metric of the phase under way: so far, and of the last 10 s.", ()),
    "/api/workers": ("Workers", "The processes that send.", ()),
    "/api/server-metrics": ("ServerMetrics", "The last values of telemetry series.", ()),
    "/api/results": ("Results", "The results, once the run has ended.", ()),
    "/api/results/list": ("Files", "The files of the run, once it has ended.", ()),
    "/api/history": ("History", "The course of the run: at most 3,600 points a series, and 500 series.", ()),
}  # fmt: skip


def _answers(schema: Schema, content: str, what: str, status: int = 200, others: tuple[int, ...] = ()) -> dict[str, Any]:
    problem = {"description": "Why not, as a sentence.", "content": {JSON: {"schema": _ref("Problem")}}}
    good = {"description": what, "content": {content: {"schema": schema}}}
    return {str(status): good, **{str(each): problem for each in (400, 401, 403, *others)}}


def document() -> dict[str, Any]:
    """The whole description; paths are below ``/runs/{run}`` where a server has several runs."""
    paths: dict[str, Any] = {}
    for path, (schema, what, others) in _ROUTES.items():
        paths[path] = {"get": {"summary": what, "responses": _answers(_ref(schema), JSON, what, others=others)}}
    plain = {
        "/metrics": ("text/plain", "The numbers in the text format of Prometheus."),
        "/api/events": ("text/event-stream", "Server-sent events: run, lines, step, snapshot, log, end, lost."),
        "/healthz": ("text/plain", "ok"), "/readyz": ("text/plain", "ok"),
    }  # fmt: skip
    for path, (content, what) in plain.items():
        others = (503,) if path == "/api/events" else ()
        paths[path] = {"get": {"summary": what, "responses": _answers(TEXT, content, what, others=others)}}
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    what = "A file of the run."
    file = _answers({"type": "string", "format": "binary"}, "application/octet-stream", what, others=(404, 416))
    paths["/api/results/files/{name}"] = {"get": {"summary": what, "parameters": [name], "responses": file}}
    for path, schema, what, status in (
        ("/api/stop", "Asked", "Stop the run, as the first Ctrl-C.", 202),
        ("/api/cancel", "Asked", "Abort what is in flight, as the second Ctrl-C.", 202),
        ("/api/shutdown", "ShuttingDown", "End the server behind a run.", 200),
    ):
        answers = _answers(_ref(schema), JSON, what, status, (409,))
        paths[path] = {"post": {"summary": what, "security": [{"token": []}], "responses": answers}}
    paths["/ws"] = {"get": {
        "summary": "WebSocket: subscribe, unsubscribe, ping.",
        "responses": {"101": {"description": "The WebSocket."}, **_answers(TEXT, "text/plain", "", others=(426,))},
    }}  # fmt: skip
    del paths["/ws"]["get"]["responses"]["200"]
    return {
        "openapi": "3.1.0",
        "info": {"title": "aiperf", "version": VERSION, "summary": "A run while it goes on, and finished ones."},
        "servers": [{"url": "/"}], "paths": paths,
        "components": {
            "schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


@cache
def document_body() -> Body:
    return body(encode(document()), JSON)


__all__ = ["SCHEMAS", "document", "document_body"]
