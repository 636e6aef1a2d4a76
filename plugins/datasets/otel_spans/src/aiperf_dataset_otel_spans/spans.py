"""Spans of a file: exports in OTLP's JSON, or one span a line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from aiperf import BadDataset
from aiperf_rows.row_files import is_table, lines, rows
from msgspec import Struct

from aiperf_dataset_otel_spans.messages import SpanError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAILED = (2, "STATUS_CODE_ERROR", "ERROR")
_EXPECTED = "a line is a span, or an export with resourceSpans"


class Span(Struct, frozen=True):
    """A span.  where: its line, for messages.  start_ms, end_ms: since 1970.  failed: its status is an error."""

    where: str
    session: str
    start_ms: float
    end_ms: float
    failed: bool
    attributes: dict[str, Any]
    events: list[dict[str, Any]]


def spans(path: Path) -> Iterator[Span]:
    """The spans in the order of the file, a line at a time; a file of one JSON value over several lines is read whole.

    Raises:
        BadDataset: The file can't be read, or has something else than spans; the message gives path and line.
    """
    for where, value in _values(path):
        for raw in _spans_of(value, where):
            if not isinstance(raw, dict):
                raise BadDataset(f"{where}: {type(raw).__name__} is no span", _EXPECTED)
            yield _span(where, raw)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    if not is_table(path) and _is_document(path):
        try:
            value = msgspec.json.decode(b"".join(line for _, line in lines(path)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadDataset(f"{path}: no JSON: {error}", _EXPECTED) from error
        yield from ((str(path), each) for each in (value if isinstance(value, list) else [value]))
        return
    for number, row in rows(path):
        yield f"{path}:{number}", row


def _is_document(path: Path) -> bool:
    """Whether the first line is no JSON object by itself."""
    _, first = next(lines(path), (0, b""))
    try:
        return not isinstance(msgspec.json.decode(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return first.strip()[:1] in (b"{", b"[") and len(first.strip()) < 1 << 16  # a longer line is a broken row


def _spans_of(value: Any, where: str) -> Iterator[Any]:
    if not isinstance(value, dict) or "resourceSpans" not in value:
        yield value
        return
    for resource in _listed(value, "resourceSpans", where):
        for scope in _listed(resource, "scopeSpans", where):
            yield from _listed(scope, "spans", where)


def _listed(value: Any, key: str, where: str) -> list[Any]:
    """The list at *key* of an object; [] where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, list | None):
        raise BadDataset(f"{where}: {key} is {type(found).__name__}; it must be a list", _EXPECTED)
    return found or []


def _span(where: str, raw: dict[str, Any]) -> Span:
    try:
        attributes = attributes_of(raw.get("attributes"))
        status = raw.get("status") or {}
        code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
        events = [
            {"name": event.get("name"), "attributes": attributes_of(event.get("attributes"))}
            for event in _listed(raw, "events", where) if isinstance(event, dict)
        ]  # fmt: skip
        session = attributes.get("gen_ai.conversation.id") or raw.get("traceId") or raw.get("trace_id")
        if not isinstance(session, str) or not session:
            raise SpanError("it has neither gen_ai.conversation.id nor traceId")
        start_ms, end_ms = _time_ms(raw, "start"), _time_ms(raw, "end")
        if end_ms < start_ms:
            raise SpanError("it ends before it starts")
        return Span(where, session, start_ms, end_ms, code in _FAILED, attributes, events)
    except SpanError as error:
        identity = raw.get("spanId") or raw.get("span_id") or "without id"
        raise BadDataset(f"{where}: span {identity}: {error}") from error


def attributes_of(given: Any) -> dict[str, Any]:
    """Attributes by name, of a list of ``{key, value}`` or of an object."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    if not isinstance(given, list):
        raise SpanError("its attributes are neither a list nor an object")
    return {str(each.get("key")): _value(each.get("value")) for each in given if isinstance(each, dict)}


def _value(given: Any) -> Any:
    """The value of OTLP's ``AnyValue``; 64-bit numbers are texts there."""
    if not isinstance(given, dict) or len(given) != 1:
        return given
    ((kind, value),) = given.items()
    try:
        if kind == "intValue":
            return int(value)
        if kind == "doubleValue":
            return float(value)
        if kind == "arrayValue":
            return [_value(each) for each in (value or {}).get("values") or ()]
        if kind == "kvlistValue":
            return attributes_of((value or {}).get("values"))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise SpanError(f"an attribute has the {kind} {value!r}") from error
    return value


def _time_ms(raw: dict[str, Any], which: str) -> float:
    """Start or end, ms since 1970: ns since then as a text or number, or an ISO time."""
    for key in (f"{which}TimeUnixNano", f"{which}_time_unix_nano"):
        if (given := raw.get(key)) is not None:
            try:
                return int(given) / 1e6
            except (TypeError, ValueError, OverflowError) as error:
                raise SpanError(f"{key} is {given!r}; it must be a number of ns since 1970") from error
    given = raw.get(f"{which}_time")
    return iso_ms(given, f"{which}_time")


def iso_ms(given: Any, key: str) -> float:
    """An ISO time, of UTC where it names no zone, in ms since 1970.

    Raises:
        SpanError: It is none.
    """
    try:
        instant = datetime.fromisoformat(given)
    except (TypeError, ValueError) as error:
        raise SpanError(f"{key} is {given!r}; it must be a time such as 2025-01-01T00:00:00Z") from error
    since = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)) - _EPOCH
    return since.days * 86_400_000.0 + since.seconds * 1000.0 + since.microseconds / 1000


__all__ = ["Span", "attributes_of", "iso_ms", "spans"]
