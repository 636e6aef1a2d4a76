"""The OpenAPI document of the service: its own routes, and those of live views below ``/runs/{run}``.

Schemas of answers are closed: an answer with a field that its schema lacks does not fit.
"""

from __future__ import annotations

from typing import Any

from aiperf_live_api import openapi

Schema = dict[str, Any]
STATES = ("queued", "preparing", "running", "done", "failed", "cancelled", "interrupted")
_LIVE = "Live"
"""Before the names of schemas that are those of live views."""
_UNPREFIXED = frozenset(("/healthz", "/readyz", "/api/shutdown"))
"""Routes of live views that are of a server, not of a run."""
_TAGGED = frozenset(("run", "config", "progress", "metrics", "workers", "server-metrics", "results", "history"))
"""Last words of live routes whose answers have a tag: 304 where the client has it."""
_DESCRIPTIONS = {
    200: "", 202: "it is asked for", 206: "a range of it", 304: "the client has it", 400: "no Host, or no body",
    401: "no token, or a wrong one", 403: "a Host or an Origin of somebody else's", 404: "there is none",
    408: "it came too slowly", 409: "not in this state", 412: "the file is another one than If-Match names",
    413: "the file is too large", 416: "the range begins behind the end", 422: "the file has faults", 426: "it is a WebSocket",
    429: "the queue is full", 503: "not now",
}  # fmt: skip
_AGAIN = frozenset((429, 503))
_EMPTY = frozenset((304, 412))


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(fields: dict[str, Any], *, optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT, _NUMBER, _WHOLE, _TRUTH = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))
_NO_TEXT, _NO_NUMBER, _NO_WHOLE = ({"type": [kind, "null"]} for kind in ("string", "number", "integer"))
_STATE = {"enum": list(STATES)}

SCHEMAS: dict[str, Schema] = {
    "Run": _object({
        "id": _TEXT, "state": _STATE, "label": _TEXT, "command": _TEXT, "posted_at": _NUMBER, "started_at": _NO_NUMBER,
        "ended_at": _NO_NUMBER, "exit_code": _NO_WHOLE, "reason": _NO_TEXT, "verdict": _NO_TEXT,
        "numbers": {"type": "object", "additionalProperties": _NUMBER}, "kept": _TRUTH,
        "links": _object(dict.fromkeys(("self", "events", "files", "archive", "page"), _TEXT)),
        "position": {"type": "integer", "minimum": 1},
    }, optional=("position",)),
    "Runs": _object({"runs": _list(_ref("Run"))}),
    "State": _object({
        "id": _TEXT, "state": _STATE, "position": _NO_WHOLE, "exit_code": _NO_WHOLE, "verdict": _NO_TEXT, "reason": _NO_TEXT,
    }),
    "Planned": _object({
        "valid": {"const": True},
        "plan": _object({
            "label": _TEXT, "runs": _WHOLE, "models": _list(_TEXT), "urls": _list(_TEXT), "endpoint": _TEXT,
            "cells": _list(_TEXT),
        }),
    }),
    "Problem": _object({"detail": _TEXT, "faults": _list(_ref("Fault"))}, optional=("faults",)),
    "Fault": _object(
        {"sentence": _TEXT, "path": _TEXT, "line": {"type": "integer", "minimum": 0}, "hints": _list(_TEXT)},
        optional=("path", "line", "hints"),
    ),
    "Files": _object({"files": _list(_object({"name": _TEXT, "bytes": _WHOLE, "modified_at": _NUMBER}))}),
    "Ended": _object({"id": _TEXT, "detail": _TEXT}),
    "Status": _object({"status": _TEXT}),
}  # fmt: skip
_PROBLEM = {"application/problem+json": {"schema": _ref("Problem")}}


def _answer(status: int, content: Schema | None = None) -> Schema:
    """The entry of a status.  content: of an answer that is no problem."""
    if status >= 400 and status not in _EMPTY:
        content = _PROBLEM
    headers = {"Retry-After": {"required": True, "schema": _TEXT}} if status in _AGAIN else None
    return {
        "description": _DESCRIPTIONS.get(status, "") or "as asked for", **({"content": content} if content else {}),
        **({"headers": headers} if headers else {}),
    }  # fmt: skip


def _operation(
    summary: str, good: dict[int, Schema | None], others: tuple[int, ...] = (), *, public: bool = False, **more: Any
) -> Schema:  # fmt: skip
    """An operation.  good: content by status.  others: statuses beyond those that every operation has."""
    statuses = {400, 403, *others, *(() if public else (401,))}
    answers = {str(status): _answer(status, content) for status, content in good.items()}
    answers |= {str(status): _answer(status) for status in sorted(statuses)}
    answers["default"] = {
        "description": "405: another method; 408: it came too slowly; 500: a fault of the service; 503: too many connections",
        "content": _PROBLEM,
    }
    return {"summary": summary, "responses": answers, **({"security": []} if public else {}), **more}


def _json(name: str) -> Schema:
    return {"application/json": {"schema": _ref(name)}}


def _parameter(name: str, where: str, schema: Schema, **more: Any) -> Schema:
    return {"name": name, "in": where, "schema": schema, **({"required": True} if where == "path" else {}), **more}


_RUN = _parameter("run", "path", _TEXT)
_NAME = _parameter("name", "path", _TEXT, description="with its folders: cell/trial_0001/profile_export_aiperf.json")
_RANGE = _parameter("Range", "header", _TEXT)
_POST = _operation(
    "Take a run: a file of aiperf profile --config",
    {201: _json("Run"), 200: {"application/json": {"schema": {"anyOf": [_ref("Planned"), _ref("Run")]}}}},
    (408, 409, 413, 422, 429, 503),
    description="201: it waits, or runs. 200: what it would run (dry_run), or the run that came with this key before.",
    parameters=[
        _parameter("Idempotency-Key", "header", {"type": "string", "maxLength": 200}),
        _parameter("dry_run", "query", {"enum": ["0", "1"]}),
    ],
    requestBody={
        "required": True, "content": {"application/json": {}, "*/*": {}},
        "description": "YAML, unless the content type says that it is JSON",
    },
)  # fmt: skip
_POST["responses"]["201"]["headers"] = {"Location": {"required": True, "schema": _TEXT}}
_EVENTS = _operation(
    "Its states and, while it runs, its snapshots: server-sent events, or a WebSocket of a run under way",
    {200: {"text/event-stream": {"schema": _TEXT}}, 101: None}, (404, 409, 503),
    description="Events of the kind state have the schema State; others are those of /runs/{run}/api/events.",
    parameters=[_parameter("Last-Event-ID", "header", _TEXT)],
)  # fmt: skip
_DELETE = _operation(
    "End a run: out of the queue; stopped, and at the second time cancelled; of an ended one the files go",
    {200: _json("Ended"), 202: _json("Ended")}, (404, 409),
)  # fmt: skip
_FILE = _operation(
    "A file, or a range of it", {200: {"*/*": {}}, 206: {"*/*": {}}, 304: None, 412: None}, (404, 416),
    parameters=[_NAME, _RANGE],
)  # fmt: skip
_PATHS: dict[str, Schema] = {
    "/runs": {"post": _POST, "get": _operation("All runs, the latest first", {200: _json("Runs")})},
    "/runs/{run}": {"parameters": [_RUN], "get": _operation("A run", {200: _json("Run")}, (404,)), "delete": _DELETE},
    "/runs/{run}/keep": {"parameters": [_RUN], "post": _operation("Keep a run beyond --keep", {200: _json("Run")}, (404, 503))},
    "/runs/{run}/events": {"parameters": [_RUN], "get": _EVENTS},
    "/runs/{run}/files": {"parameters": [_RUN], "get": _operation("Its files", {200: _json("Files")}, (404,))},
    "/runs/{run}/files/{name}": {"parameters": [_RUN], "get": _FILE},
    "/runs/{run}/archive": {
        "parameters": [_RUN],
        "get": _operation("All files as a TAR", {200: {"application/x-tar": {}}}, (404, 409, 503)),
    },
    "/runs/{run}/": {
        "parameters": [_RUN],
        "get": _operation(
            "The page of a run", {200: {"text/html": {"schema": _TEXT}}, 304: None}, (404,), public=True,
        ),
    },
    "/static/{name}": {
        "parameters": [_NAME], "get": _operation("A file of the page", {200: {"*/*": {}}, 304: None}, (404,), public=True),
    },
    "/healthz": {"get": _operation("Whether the service answers", {200: _json("Status")}, public=True)},
    "/readyz": {"get": _operation("Whether it takes runs", {200: _json("Status")}, (503,), public=True)},
    "/metrics": {"get": _operation("For Prometheus", {200: {"text/plain": {"schema": _TEXT}}})},
    "/openapi.json": {"get": _operation("This document", {200: {"application/json": {"schema": {"type": "object"}}}})},
}  # fmt: skip
del _PATHS["/readyz"]["get"]["responses"]["503"]["headers"]


def _live_schemas(found: Any) -> Any:
    """A part of the document of live views, whose references name our copies of its schemas."""
    if isinstance(found, dict):
        return {
            name: value.replace("/schemas/", f"/schemas/{_LIVE}") if name == "$ref" else _live_schemas(value)
            for name, value in found.items()
        }
    return [_live_schemas(each) for each in found] if isinstance(found, list) else found


def _live_paths() -> dict[str, Schema]:
    """The routes of a run's API, below ``/runs/{run}``: of the one under way they are its own answers."""
    made = {}
    for path, methods in openapi.document()["paths"].items():
        if path in _UNPREFIXED:
            continue
        ((method, operation),) = methods.items()
        good: dict[int, Schema | None] = {
            int(status): _live_schemas(answer.get("content")) for status, answer in operation["responses"].items()
            if int(status) < 400
        }  # fmt: skip
        others = {int(status) for status in operation["responses"] if int(status) >= 400} | {404, 409, 503}
        if path.rpartition("/")[2] in _TAGGED:
            good[304] = None
        if path.endswith("{name}"):
            good |= {206: {"*/*": {}}, 304: None, 412: None, 200: {"*/*": {}}}
            others |= {416}
        more = {"parameters": operation["parameters"]} if "parameters" in operation else {}
        own = _operation(operation["summary"], good, tuple(others), **more)
        del own["responses"]["503"]["headers"]  # a run that has not begun does not say when
        made[f"/runs/{{run}}{path}"] = {"parameters": [_RUN], method: own}
    return made


DOCUMENT: Schema = {
    "openapi": "3.1.0",
    "info": {"title": "aiperf service", "version": "1", "description": "Takes runs, shows them, keeps their files."},
    "servers": [{"url": "/"}],
    "security": [{"token": []}],
    "paths": _PATHS | _live_paths(),
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": SCHEMAS | {f"{_LIVE}{name}": _live_schemas(schema) for name, schema in openapi.SCHEMAS.items()},
    },
}

__all__ = ["DOCUMENT", "SCHEMAS", "STATES"]
