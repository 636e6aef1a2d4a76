"""A Weka trace as it stands in a file (spec: datasets §3.11): what its rows may have, and what is refused."""

from __future__ import annotations

import contextlib
import math
from array import array
from typing import Annotated, Any, Literal

import msgspec
from aiperf import BadDataset
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from msgspec import Meta, Raw, Struct, field

from aiperf_dataset_weka_trace.options import ABSOLUTE, RELATIVE

_SLACK_S = 1e-6
"""A request that is earlier than its subagent by less has its time."""
_Count = Annotated[int, Meta(ge=0)]


class _Request(Struct, forbid_unknown_fields=True, tag_field="type"):
    """What requests of both types have.  t: s.  in, out: tokens of the prompt and of the answer."""

    t: float
    model: str
    input_length: _Count = field(name="in")
    output_length: _Count = field(name="out")
    hash_ids: list[int] = []
    input_types: list[str] = []
    output_types: list[str] = []
    stop: str | None = ""
    api_time: float | None = None
    think_time: float | None = None


class PlainCall(_Request, forbid_unknown_fields=True, tag="n"):
    """A request that was not streamed."""


class StreamedCall(_Request, forbid_unknown_fields=True, tag="s"):
    """A streamed one.  ttft: s until its first token."""

    ttft: float | None = None


class SubagentCall(Struct, forbid_unknown_fields=True, tag_field="type", tag="subagent"):
    """A subagent, with its requests."""

    t: float
    agent_id: str
    subagent_type: str
    status: str
    requests: list[PlainCall | StreamedCall]
    models: list[str]
    duration_ms: float | None = None
    total_tokens: int | None = None
    tool_use_count: int | None = None
    tool_tokens: _Count = 0
    system_tokens: _Count = 0


class _Kind(Struct):
    type: str = ""


class WekaRow(Struct, forbid_unknown_fields=True):
    """A trace.  Its requests are read one by one, so that the blocks of all are never Python objects together."""

    id: str
    models: list[str]
    block_size: Annotated[int, Meta(gt=0)]
    hash_id_scope: Literal["local"]
    requests: list[Raw]
    tool_tokens: _Count = 0
    system_tokens: _Count = 0
    totals: dict[str, Any] | None = None


class ClockBasis(Struct):
    """What is known of the times of subagents' requests.

    relative: they count from their subagent.  evidence: the first request that is earlier than its subagent; against: the first
    subagent whose first request has its own time, though that is not 0.
    """

    relative: bool
    evidence: str = ""
    against: str = ""


_decode = msgspec.json.Decoder(WekaRow).decode
_decode_entry = msgspec.json.Decoder(PlainCall | StreamedCall | SubagentCall).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


class EarlierRequest(Exception):  # noqa: N818 - an outcome: the corpus is read again, by the other clock
    """A request is earlier than its subagent, so that times count from there.  Its text says which."""


def session_of(text: bytes, place: str, basis: str, seen: ClockBasis) -> RecordedSession:
    """The session of a trace.

    place: the file, and the line where it has several.  basis: of --weka-nested-timestamp-basis, auto where the corpus has not
    decided yet.  seen: notes what speaks for one basis.

    Raises:
        BadDataset: The trace breaks a rule; the message gives place, trace, agent and request.
        EarlierRequest: By ``auto``, the times of the corpus count from subagents.
    """
    try:
        row = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(place, error, _keys(WekaRow)) from error
    name = f"{place}: trace {row.id!r}"
    if not row.id:
        raise BadDataset(f"{place}: its id is empty")
    if "::" in row.id:
        raise BadDataset(f"{name} has '::' in its id, behind which results name its agents", "give it another id")
    entries: list[RecordedRequest | Subagent] = []
    for number, raw in enumerate(row.requests):
        where = f"{name}, request {number}"
        try:
            entry = _decode_entry(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _refused(where, error, _entry_keys(raw, error)) from error
        if isinstance(entry, SubagentCall):
            entries.append(_subagent(entry, f"{name}, subagent {entry.agent_id!r}", basis, seen))
        else:
            entries.append(_request(entry, entry.t, where))
    return RecordedSession(row.id, row.block_size, entries, row.tool_tokens, row.system_tokens)


def _subagent(entry: SubagentCall, name: str, basis: str, seen: ClockBasis) -> Subagent:
    _check_time(entry.t, name)
    requests = []
    for number, inner in enumerate(entry.requests):
        where = f"{name}, request {number}"
        _check_time(inner.t, where)
        if inner.t < entry.t - _SLACK_S and not seen.evidence:
            seen.evidence = f"{where}: {inner.t:g} s, its subagent at {entry.t:g} s"
        if not number and entry.t > _SLACK_S and abs(inner.t - entry.t) <= _SLACK_S and not seen.against:
            seen.against = f"{where}: {inner.t:g} s, as its subagent"
        requests.append(_request(inner, _at(inner.t, entry.t, where, basis, seen), where))
    duration_ms = None if entry.duration_ms is None else float(entry.duration_ms)
    return Subagent(
        entry.agent_id, entry.t, requests, duration_ms, entry.subagent_type, entry.tool_tokens, entry.system_tokens
    )


def _at(inner_s: float, marker_s: float, where: str, basis: str, seen: ClockBasis) -> float:
    """When an inner request was sent, on the clock of the trace."""
    if seen.relative:
        return inner_s + marker_s
    if inner_s >= marker_s - _SLACK_S:
        return max(inner_s, marker_s)
    if basis == ABSOLUTE:
        why = f"{where} is of {inner_s:g} s, before its subagent at {marker_s:g} s"
        raise BadDataset(why, f"use --weka-nested-timestamp-basis {RELATIVE} where times count from the subagent")
    raise EarlierRequest(seen.evidence)


def _request(row: PlainCall | StreamedCall, at_s: float, where: str) -> RecordedRequest:
    _check_time(at_s, where)
    try:
        blocks = array("q", row.hash_ids)
    except OverflowError as error:
        raise BadDataset(f"{where} has hash_ids of more than 64 bits") from error
    tool_result = "tool_result" in row.input_types if row.input_types else None
    return RecordedRequest(
        at_s, row.input_length, row.output_length, blocks, row.model, row.api_time, row.think_time, tool_result, row.stop or ""
    )


def _check_time(at_s: float, where: str) -> None:
    if not 0 <= at_s < math.inf or not math.isfinite(at_s * 1e9):
        raise BadDataset(f"{where} has the time t {at_s:g}: it is finite, and 0 s or later")


def _keys(form: type[Struct]) -> str:
    return ", ".join(each.encode_name for each in msgspec.structs.fields(form))


def _entry_keys(raw: Raw, error: Exception) -> str:
    """The keys of the entry that *error* is of: a subagent, a request, or an inner request of a subagent."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        if _decode_kind(raw).type == "subagent" and "$.requests[" not in str(error):
            return f"type, {_keys(SubagentCall)}"
    return f"type, {_keys(PlainCall)}; of the type s also ttft"


def _refused(where: str, error: Exception, keys: str) -> BadDataset:
    if not isinstance(error, msgspec.ValidationError):
        return BadDataset(f"{where}: no JSON: {error}")
    return BadDataset(f"{where}: {error}", *([f"its keys are {keys}"] if "unknown field" in str(error) else ()))


__all__ = ["ClockBasis", "EarlierRequest", "WekaRow", "session_of"]
