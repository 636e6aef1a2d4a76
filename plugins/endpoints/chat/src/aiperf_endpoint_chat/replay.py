"""An answer of the chat dialect as the next turn repeats it: tool calls with their ids, the first of several choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from aiperf import Delta, Message
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.model import ToolCall
from aiperf_dialects.choices import Choices, documents
from aiperf_dialects.tool_calls import arguments_text, tool_calls

_MARKS = (b"tool_calls", b"function_call", b'"index":1', b'"index": 1')
"""What stands in an answer whose text does not say everything, and sometimes in others."""


class ChatReader(DecodingReader):
    """Reads each event by itself, and keeps the events for an answer with tool calls."""

    def __init__(self, decode: Callable[[bytes], Delta | None]) -> None:
        super().__init__(decode)
        self._events: list[Sequence[bytes]] = []

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        deltas = list(map(self.decode, events))
        self._events.append(events)
        return deltas

    def replay(self) -> Sequence[Message] | None:
        """The first choice, where its text alone does not say everything: with tool calls (or the older function call), or one
        of several choices; None for any other answer.
        """
        events = [event for some in self._events for event in some]
        if not any(mark in event for event in events for mark in _MARKS):
            return None
        messages = list(_messages(events))
        calls, function = _called(messages)
        text = "".join(_text(message.get("content")) for message in messages)
        if calls or function:
            called = {"tool_calls": calls} if calls else {"function_call": function}
            return [Message.of({"role": "assistant", "content": text or None, **called})]
        thought = "".join(_text(message.get("reasoning_content") or message.get("reasoning")) for message in messages)
        return [Message("assistant", (text or thought,))] if text or thought else None

    def tool_calls(self) -> Sequence[ToolCall]:
        """The calls of the first choice; the older function call is one without an id."""
        calls, function = _called(list(_messages(event for events in self._events for event in events)))
        return tool_calls(calls or ([{"function": function}] if function else ()))

    def choices(self) -> Sequence[Delta] | None:
        """Each of several choices, in the order of their index; None for one."""
        by_index: dict[int, list[dict[str, Any]]] = {}
        choices = Choices()
        for document in documents(event for events in self._events for event in events):
            for index, choice in choices.take(document):
                message = choice.get("delta") or choice.get("message")
                if isinstance(message, dict):
                    by_index.setdefault(index, []).append(message)
        return choices.told({index: _delta(messages) for index, messages in by_index.items()})


def _delta(messages: Sequence[dict[str, Any]]) -> Delta:
    """The pieces of one choice together."""
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    pieces = (*functions, *(message.get("function_call") for message in messages))
    return Delta(
        "".join(map(_said, messages)),
        "".join(_text(message.get("reasoning_content") or message.get("reasoning")) for message in messages),
        "".join(f"{piece.get('name') or ''}{_text(piece.get('arguments'))}" for piece in pieces if isinstance(piece, dict)),
    )


def _said(message: dict[str, Any]) -> str:
    """The text of a delta or a message: its content, its refusal, or the transcript of its sound."""
    audio = message.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    return _text(message.get("content")) or _text(message.get("refusal")) or _text(transcript)


def _text(content: Any) -> str:
    """Content as a text, or as a list of parts."""
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else [content]
    return "".join(part for part in parts if isinstance(part, str))


def _called(messages: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The tool calls of a choice's deltas, and its older function call; {} for none."""
    calls = merged_calls(call for message in messages for call in message.get("tool_calls") or ())
    return calls, _function({}, (call for message in messages if (call := message.get("function_call"))))


def merged_calls(pieces: Iterable[Any]) -> list[dict[str, Any]]:
    """The calls of these deltas, merged by their ``index``; a piece without one is a call of its own."""
    calls: list[dict[str, Any]] = []
    by_index: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        index = piece.get("index")
        call = by_index.get(index) if index is not None else None
        if call is None:
            call = {}
            calls.append(call)
            if index is not None:
                by_index[index] = call
        for key, value in piece.items():
            if key == "function":
                call["function"] = _function(call.get("function", {}), [value])
            elif key != "index" and value is not None:
                call[key] = value
    return calls


def _function(function: dict[str, Any], pieces: Iterable[Any]) -> dict[str, Any]:
    """Name and arguments; arguments come in pieces of one text, of some servers as an object."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        if piece.get("name"):
            function = {**function, "name": piece["name"]}
        arguments = piece.get("arguments")
        if arguments is not None:
            function = {**function, "arguments": function.get("arguments", "") + arguments_text(arguments)}
    return function


def _messages(events: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The deltas, or the message, of the first choice."""
    return (message for index, message in _indexed(events) if not index)


def _indexed(events: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The deltas, or the messages, of all choices, each with its index."""
    for document in documents(events):
        for index, choice in Choices().take(document):
            message = choice.get("delta") or choice.get("message")
            if isinstance(message, dict):
                yield index, message
