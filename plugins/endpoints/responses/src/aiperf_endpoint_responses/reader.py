"""Reads one answer of the Responses API: typed events, or a whole response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec
from aiperf import BadResponse, Delta, Message
from aiperf.sdk.endpoint import decoded
from aiperf.sdk.model import REFUSED, ToolCall
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.tool_calls import called
from msgspec import Raw, Struct

PREVIOUS = "previous_response_id"
"""Of the session's state, and of the request: the id of the answer before."""
_T = TypeVar("_T")
_Part: TypeAlias = tuple[str | None, int | None, int | None]
"""A part of the answer: item, its place, the part's place in it.  llama.cpp tells the item alone."""

_TEXT, _REASONING, _TOOL = range(3)
_PARTS = {
    "response.output_text": (_TEXT, "text"),
    "response.refusal": (_TEXT, "refusal"),
    "response.reasoning_text": (_REASONING, "text"),
    "response.reasoning_summary_text": (_REASONING, "text"),
    "response.function_call_arguments": (_TOOL, "arguments"),
    "response.custom_tool_call_input": (_TOOL, "input"),
    "response.mcp_call_arguments": (_TOOL, "arguments"),
    "response.code_interpreter_call_code": (_TOOL, "code"),
}
"""Of each part: what its text is, and the field of its ``done`` event that has all of it.  A ``delta`` has its ``delta``."""
_DELTAS = {f"{name}.delta": kind for name, (kind, _) in _PARTS.items()}
_DONE = {f"{name}.done": part for name, part in _PARTS.items()}
_REFUSAL, _REFUSED = "response.refusal.delta", "response.refusal.done"
_ENDS = ("response.completed", "response.incomplete")
_FAILURES = ("response.failed", "response.error", "error")
_NOT_REPLAYED = frozenset(
    ("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call", "computer_call", "reasoning")
)
_CALLS = {
    "function_call": ("name", "arguments"), "custom_tool_call": ("name", "input"), "mcp_call": ("name", "arguments"),
}  # fmt: skip


class _Event(Struct, gc=False):
    """An event, or a whole response, which has no type.  Fields that only some events need stay bytes."""

    type: str = ""
    delta: Any = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    text: Raw = Raw()
    refusal: Raw = Raw()
    arguments: Raw = Raw()
    input: Raw = Raw()
    code: Raw = Raw()
    item: Raw = Raw()
    response: Raw = Raw()
    object: str | None = None
    error: Raw = Raw()


class _Response(Struct, gc=False):
    id: str | None = None
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    output_text: str | None = None
    usage: Any = None
    incomplete_details: dict[str, Any] | None = None
    error: Any = None


_read_response = msgspec.json.Decoder(_Response).decode
_read_item = msgspec.json.Decoder(dict[str, Any]).decode


class ResponsesReader(BatchReader[_Event]):
    """Counts each text once, whichever of its events a server sends, and keeps items and id for the next turn."""

    dialect = "responses"
    event_type = _Event

    def __init__(self) -> None:
        self._seen: set[_Part] = set()
        self._finished: set[_Part] = set()
        self._items: dict[str, dict[str, Any]] = {}
        self._id: str | None = None
        self._refused = False

    def replay(self) -> Sequence[Message] | None:
        items = [item for item in self._items.values() if item.get("type") not in _NOT_REPLAYED]
        return [Message.of(item) for item in items] or None

    def tool_calls(self) -> Sequence[ToolCall]:
        """The calls that wait for an output; a result carries the ``call_id``."""
        items = (item for item in self._items.values() if item.get("type") in ("function_call", "custom_tool_call"))
        return [
            called(item.get("call_id") or item.get("id"), item.get("name"), item.get(_CALLS[item["type"]][1])) for item in items
        ]

    def state(self) -> dict[str, Any]:
        return {} if self._id is None else {PREVIOUS: self._id}

    def delta(self, event: _Event, data: bytes) -> Delta | None:
        name = event.type
        kind = _DELTAS.get(name)
        if kind is not None:
            self._refused = self._refused or name == _REFUSAL
            index = event.content_index
            self._seen.add((event.item_id, event.output_index, event.summary_index if index is None else index))
            text = event.delta
            return _delta(kind, text) if isinstance(text, str) else None
        done = _DONE.get(name)
        if done is not None:
            self._refused = self._refused or done is _DONE[_REFUSED]
            return self._done(event, *done)
        if name == "response.output_item.done":
            return _delta_of([self._new_text(_inside(_read_item, event.item, data), event.output_index)])
        if name in _ENDS:
            return self._end(_inside(_read_response, event.response, data), data)
        if name in _FAILURES:
            raise _failure(event, data)
        if name:
            return None
        if event.object == "response":
            return self._end(decoded("responses", _read_response, data), data)
        return self.empty(data)

    def _done(self, event: _Event, kind: int, field: str) -> Delta | None:
        index = event.content_index
        part = (event.item_id, event.output_index, event.summary_index if index is None else index)
        if part in self._seen:
            return None
        self._finished.add(part)
        value = getattr(event, field)
        text = msgspec.json.decode(value) if value else ""
        return _delta(kind, text) if isinstance(text, str) else None

    def _end(self, response: _Response, data: bytes) -> Delta:
        """The end of a stream, or a whole response.  What of its output no event told before counts now."""
        if response.status == "failed" or response.error:
            raise _response_failure(response, data)
        texts = [self._new_text(item, at) for at, item in enumerate(response.output or ())]
        if not self._seen and not self._finished and not any(map(any, texts)) and response.output_text:
            texts.append((response.output_text, "", ""))
        reason = (response.incomplete_details or {}).get("reason")
        incomplete = response.status == "incomplete"
        self._id = None if incomplete else response.id
        delta = _delta_of(texts) or Delta()
        finish = reason if isinstance(reason, str) else response.status
        refused = {REFUSED: 1.0} if self._refused or any(map(_refuses, response.output or ())) else None
        return Delta(delta.text, delta.reasoning, delta.tool, response.usage, finish, 0, refused)

    def _new_text(self, item: dict[str, Any], index: int | None) -> tuple[str, str, str]:
        """Keep the item; its text, reasoning and tool text, where no event of it was told before."""
        names = [value for key in ("id", "call_id", "item_id") if isinstance(value := item.get(key), str)]
        name = names[0] if names else f"{index}"
        told = name in self._items or any(
            seen in names or (at is not None and at == index) for seen, at, _ in self._seen | self._finished
        )
        self._items[name] = item
        return ("", "", "") if told else _texts(item)


def _delta(kind: int, text: str) -> Delta:
    return Delta(text) if kind == _TEXT else Delta("", text) if kind == _REASONING else Delta("", "", text)


def _delta_of(texts: Iterable[tuple[str, str, str]]) -> Delta | None:
    text, reasoning, tool = map("".join, zip(*texts, strict=True)) if (texts := list(texts)) else ("", "", "")
    return Delta(text, reasoning, tool) if text or reasoning or tool else None


def _inside(read: Callable[[Raw], _T], part: Raw, data: bytes) -> _T:
    """A part of the event *data*, decoded.

    Raises:
        BadResponse: It is missing, or another.
    """
    try:
        return read(part)
    except msgspec.DecodeError as error:
        raise BadResponse(f"responses: not of this dialect: {error}", raw=data) from error


def _texts(item: dict[str, Any]) -> tuple[str, str, str]:
    """Text, reasoning and tool text of a finished item."""
    kind = item.get("type")
    if kind == "message":
        return "".join(map(_part_text, _objects(item.get("content")))), "", ""
    if kind == "reasoning":
        return "", "".join(map(_part_text, (*_objects(item.get("summary")), *_objects(item.get("content"))))), ""
    fields = _CALLS.get(kind, ()) if isinstance(kind, str) else ()
    return "", "", "".join(value for field in fields if isinstance(value := item.get(field), str))


def _part_text(part: dict[str, Any]) -> str:
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text if isinstance(text, str) else ""


def _refuses(item: dict[str, Any]) -> bool:
    return any(part.get("type") == "refusal" for part in _objects(item.get("content")))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _failure(event: _Event, data: bytes) -> BadResponse:
    """The error of a failure event: in ``response.error``, in ``error``, or beside the type."""
    if event.response:
        return _response_failure(_inside(_read_response, event.response, data), data)
    said = msgspec.json.decode(event.error) if event.error else None
    return _error(said if isinstance(said, dict) else msgspec.json.decode(data), data)


def _response_failure(response: _Response, data: bytes) -> BadResponse:
    return _error(response.error if isinstance(response.error, dict) else {}, data)


def _error(error: dict[str, Any], data: bytes) -> BadResponse:
    code, message = error.get("code"), error.get("message")
    number = (
        code if isinstance(code, int) else int(code) if isinstance(code, str) and code.isdigit() and len(code) < 9 else None
    )
    kind = code if isinstance(code, str) and number is None else error.get("type")
    kind = kind if isinstance(kind, str) and kind not in _FAILURES else None
    text = message if isinstance(message, str) and message else "the response failed, and the server says no more"
    return BadResponse(text, raw=data, code=number, kind=kind)
