"""The OpenAPI document of the service."""

from __future__ import annotations

from typing import Any

_PROBLEM = {
    "description": "why not, as a sentence",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_RUN = {"application/json": {"schema": {"$ref": "#/components/schemas/Run"}}}
_ID = {"name": "run", "in": "path", "required": True, "schema": {"type": "string"}}
_STATES = ["queued", "preparing", "running", "done", "failed", "cancelled", "interrupted"]


def _operation(
    summary: str, answers: dict[str, Any], problems: tuple[str, ...] = ("401", "404"), **more: Any
) -> dict[str, Any]:
    return {"summary": summary, "responses": {**answers, **dict.fromkeys(problems, _PROBLEM)}, **more}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _number(*more: str) -> dict[str, Any]:
    return {"type": ["number", *more]}


_RUN_SCHEMA = {
    "type": "object",
    "required": ["id", "state", "label", "command", "posted_at", "kept", "links", "numbers"],
    "properties": {
        "id": {"type": "string"},
        "state": {"enum": _STATES},
        "label": {"type": "string"},
        "command": {"type": "string"},
        "posted_at": _number(),
        "started_at": _number("null"),
        "ended_at": _number("null"),
        "exit_code": {"type": ["integer", "null"]},
        "reason": {"type": ["string", "null"]},
        "verdict": {"type": ["string", "null"]},
        "numbers": {"type": "object", "additionalProperties": _number()},
        "kept": {"type": "boolean"},
        "position": {"type": "integer", "minimum": 1},
        "links": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["detail"],
    "properties": {"detail": {"type": "string"}, "faults": {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}}},
}
_FAULT_SCHEMA = {
    "type": "object",
    "required": ["sentence"],
    "properties": {
        "sentence": {"type": "string"},
        "path": {"type": "string"},
        "line": {"type": "integer", "minimum": 0},
        "hints": {"type": "array", "items": {"type": "string"}},
    },
}
_FILES = {
    "type": "object",
    "required": ["files"],
    "properties": {
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "bytes", "modified_at"],
                "properties": {"name": {"type": "string"}, "bytes": {"type": "integer"}, "modified_at": _number()},
            },
        }
    },
}
_LISTED = {
    "type": "object",
    "required": ["runs"],
    "properties": {"runs": {"type": "array", "items": {"$ref": "#/components/schemas/Run"}}},
}
_STATUS = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
_DONE = {"type": "object", "required": ["id", "detail"], "properties": {"id": {"type": "string"}, "detail": {"type": "string"}}}
_PLAN = {
    "type": "object",
    "required": ["valid", "plan"],
    "properties": {"valid": {"const": True}, "plan": {"type": "object"}},
}

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "aiperf service", "version": "1", "description": "Takes runs, shows them, keeps their files."},
    "security": [{"token": []}],
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": {"Run": _RUN_SCHEMA, "Problem": _PROBLEM_SCHEMA, "Fault": _FAULT_SCHEMA},
    },
    "paths": {
        "/runs": {
            "post": _operation(
                "Take a run: a file of aiperf profile --config",
                {
                    "201": {
                        "description": "it waits, or runs",
                        "headers": {"Location": {"schema": {"type": "string"}}},
                        "content": _RUN,
                    },
                    "200": _json(
                        "what it would run (dry_run), or the run that came with this key before",
                        {"anyOf": [_PLAN, {"$ref": "#/components/schemas/Run"}]},
                    ),
                },
                ("400", "401", "409", "413", "422", "429", "503"),
                parameters=[
                    {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 200}},
                    {"name": "dry_run", "in": "query", "schema": {"enum": ["0", "1"]}},
                ],
                requestBody={"required": True, "content": {"application/yaml": {}, "application/json": {}}},
            ),
            "get": _operation("All runs, the latest first", {"200": _json("the runs", _LISTED)}, ("401",)),
        },
        "/runs/{run}": {
            "parameters": [_ID],
            "get": _operation("A run", {"200": {"description": "the run", "content": _RUN}}),
            "delete": _operation(
                "End a run: out of the queue; stopped, and at the second time cancelled; of an ended one the files go",
                {"200": _json("it is gone", _DONE), "202": _json("it is ending", _DONE)},
                ("401", "404", "409"),
            ),
        },
        "/runs/{run}/keep": {
            "parameters": [_ID],
            "post": _operation("Keep a run beyond --keep", {"200": {"description": "the run", "content": _RUN}}),
        },
        "/runs/{run}/events": {
            "parameters": [_ID],
            "get": _operation(
                "Its states and, while it runs, its snapshots: server-sent events, or a WebSocket",
                {"200": {"description": "events", "content": {"text/event-stream": {}}}, "101": {"description": "a WebSocket"}},
                ("401", "404", "409", "503"),
            ),
        },
        "/runs/{run}/files": {"parameters": [_ID], "get": _operation("Its files", {"200": _json("the files", _FILES)})},
        "/runs/{run}/files/{name}": {
            "parameters": [_ID, {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": _operation(
                "A file, or a range of it",
                {
                    "200": {"description": "the file"},
                    "206": {"description": "a range"},
                    "416": {"description": "a range beyond its end"},
                },
            ),
        },
        "/runs/{run}/archive": {
            "parameters": [_ID],
            "get": _operation(
                "All files as a TAR",
                {"200": {"description": "the archive", "content": {"application/x-tar": {}}}},
                ("401", "404", "409"),
            ),
        },
        "/healthz": {"get": _operation("Whether the service answers", {"200": _json("it does", _STATUS)}, (), security=[])},
        "/readyz": {"get": _operation("Whether it takes runs", {"200": _json("it does", _STATUS)}, ("503",), security=[])},
        "/metrics": {
            "get": _operation("For Prometheus", {"200": {"description": "metrics", "content": {"text/plain": {}}}}, ("401",))
        },
    },
}

__all__ = ["DOCUMENT"]
