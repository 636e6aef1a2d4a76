"""The rows of a tracelab file, one for each round of an agent, and when each was sent and answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from aiperf import BadDataset
from aiperf_rows.row_files import lines, row_of
from msgspec import Meta, Struct

KEYS = ("session_id", "round_index", "input_tokens_total", "prefix_tokens", "newly_append_tokens", "timing_events")
"""Keys of every row, by which a file is recognised."""
_INPUTS, _OUTPUTS = frozenset(("user_message", "tool_result")), frozenset(("text", "reasoning", "tool_call"))
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_ID = 150
"""Characters of a session's name in results."""
_Count = Annotated[int, Meta(ge=0)] | None


class RoundEvent(Struct):
    """Something that came or went in a round.  timestamp: None where it has no time."""

    event_type: str | None = None
    timestamp: str | None = None


class Tool(Struct):
    """A call of a tool."""

    tool_name: str | None = None
    emitted_at: str | None = None
    result_at: str | None = None
    tool_wall_latency_ms: float | None = None


class _Row(Struct):
    session_id: str | int | None = None
    round_index: float | None = None
    input_tokens_total: _Count = None
    prefix_tokens: _Count = None
    output_tokens: _Count = None
    reasoning_output_tokens: _Count = None
    timing_events: list[RoundEvent] | None = None
    tools: list[Tool] | None = None
    model: str | None = None
    provider: str | None = None
    user: str | int | None = None
    project: str | int | None = None
    first_input_event_type: str | None = None


_decode = msgspec.json.Decoder(_Row).decode


class Call(Struct, frozen=True):
    """A tool's call as its agent saw it, in seconds since 1970.  latency_ms: as it was recorded; None where it wasn't."""

    tool: str
    emitted_s: float | None
    result_s: float | None
    latency_ms: float | None


class Round(Struct, frozen=True):
    """A request of an agent.

    sent_s: when its last input had come, in seconds since 1970; None where it has no times.  answer_s: until its last output;
    None where it has none.  first_s, last_s: of all its times; None where it has none.
    """

    line: int
    index: float
    input_tokens: int
    prefix_tokens: int
    output_tokens: int
    model: str
    provider: str | None
    owner: tuple[str | int | None, str | int | None]
    tool_result: bool
    calls_tool: bool
    sent_s: float | None
    answer_s: float | None
    first_s: float | None
    last_s: float | None
    calls: tuple[Call, ...]


def sessions_of(path: Path) -> tuple[dict[str, list[Round]], int]:
    """The rounds of each session, both in the order of the file; and how many rows belong to none.

    Raises:
        BadDataset: The file can't be read, a row is wrong, no row has a session, or two sessions are one by their safe names.
    """
    sessions: dict[str, list[Round]] = {}
    without = 0
    for line, row in _rows(path):
        if row.session_id is None or row.session_id == "":
            without += 1
            continue
        sessions.setdefault(str(row.session_id), []).append(_round(path, line, row))
    if not sessions:
        raise BadDataset(f"{path} has no row with a session_id", f"a row of tracelab has {', '.join(KEYS)}")
    names: dict[str, str] = {}
    for name in sessions:
        other = names.setdefault(safe_id(name), name)
        if other != name:
            where = f"{path}:{sessions[name][0].line}"
            why = f"the sessions {other!r} and {name!r} are both called {safe_id(name)!r} in results"
            raise BadDataset(f"{where}: {why}", "rename one of them: only letters, digits, '.', '_' and '-' are kept")
    return sessions, without


def safe_id(session: str) -> str:
    """The session's name in results: letters, digits, ``.``, ``_`` and ``-``, at most 150 characters."""
    return _UNSAFE.sub("_", session)[:_MOST_ID]


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    for number, line in lines(path):
        try:
            row = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            row_of(path, number, line)  # what is no JSON object is refused there
            raise BadDataset(f"{path}:{number}: {_readable(error)}") from error
        yield number, row


def _readable(error: Exception) -> str:
    """The words of *error* in this program's form: the key first."""
    what, _, place = str(error).partition(" - at ")
    return f"{place.strip('`').removeprefix('$.')}: {what[:1].lower()}{what[1:]}" if place else what


def _round(path: Path, line: int, row: _Row) -> Round:
    def time(text: str | None, key: str) -> float | None:
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            hint = "write it like 2026-01-01T00:00:00Z"
            raise BadDataset(f"{path}:{line}: {key} {text!r} is no time in ISO 8601", hint) from error
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()

    events = [(event.event_type, time(event.timestamp, "timestamp")) for event in row.timing_events or ()]
    calls = tuple(
        Call(call.tool_name or "", time(call.emitted_at, "emitted_at"), time(call.result_at, "result_at"),
             call.tool_wall_latency_ms)
        for call in row.tools or ()
    )  # fmt: skip
    inputs = [at for kind, at in events if kind in _INPUTS and at is not None]
    outputs = [at for kind, at in events if kind in _OUTPUTS and at is not None]
    sent_s = max(inputs) if inputs else min(outputs, default=None)
    stamps = [at for _, at in events if at is not None]
    stamps += [at for call in calls for at in (call.emitted_s, call.result_s) if at is not None]
    total = row.input_tokens_total or 0
    return Round(
        line=line, index=row.round_index or 0, input_tokens=total, prefix_tokens=min(row.prefix_tokens or 0, total),
        output_tokens=(row.output_tokens or 0) + (row.reasoning_output_tokens or 0), model=row.model or "unknown",
        provider=row.provider, owner=(row.user, row.project), tool_result=row.first_input_event_type == "tool_result",
        calls_tool=any(kind == "tool_call" for kind, _ in events), sent_s=sent_s,
        answer_s=max(max(outputs) - sent_s, 0.0) if outputs and sent_s is not None else None,
        first_s=min(stamps, default=None), last_s=max(stamps, default=None), calls=calls,
    )  # fmt: skip


def is_row(row: Any) -> bool:
    """Whether a row has all keys of a round."""
    return isinstance(row, dict) and all(key in row for key in KEYS)


__all__ = ["KEYS", "Call", "Round", "is_row", "safe_id", "sessions_of"]
