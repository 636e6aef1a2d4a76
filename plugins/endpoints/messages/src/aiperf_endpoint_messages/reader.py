"""Reads one answer of the Messages API: named events about blocks, or a whole message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadResponse, Delta, Message, in_band_error
from aiperf.sdk.model import HIDDEN, ToolCall
from aiperf_dialects.choices import reason_of
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.tool_calls import called
from msgspec import Struct

_TOOLS = ("tool_use", "server_tool_use")


class _Delta(Struct, gc=False):
    """What a block, or the message, gets more of."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: Any = None


class _Event(Struct, gc=False):
    """An event, or a whole message."""

    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: Any = None
    usage: Any = None
    content: list[dict[str, Any]] | None = None
    stop_reason: Any = None


_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "input"}


class MessagesReader(BatchReader[_Event]):
    """Keeps the blocks for the next turn: a server takes thinking back only with its signature."""

    dialect = "messages"
    event_type = _Event

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: list[tuple[int, _Delta]] = []

    def delta(self, event: _Event, data: bytes) -> Delta | None:
        name, delta = event.type, event.delta
        if name == "content_block_delta" and delta is not None:
            self._pieces.append((event.index, delta))
            if delta.type == "text_delta":
                return Delta(delta.text or "")
            if delta.type == "thinking_delta":
                return Delta("", delta.thinking or "")
            return Delta("", "", delta.partial_json or "") if delta.type == "input_json_delta" else None
        if name == "content_block_start" and event.content_block is not None:
            self._blocks[event.index] = event.content_block
            return _shown(event.content_block)
        if name == "message_delta" and delta is not None:
            return Delta(usage=event.usage, finish=reason_of(delta.stop_reason))
        if name == "message_start":
            usage = event.message.get("usage") if isinstance(event.message, dict) else None
            return Delta(usage=usage) if usage else None
        if name == "message":
            return self._whole(event)
        if name == "error" or not name:
            failure = in_band_error(data)
            if failure is not None or name:
                raise failure or BadResponse("messages: an error without words", raw=data)
        return None

    def _whole(self, event: _Event) -> Delta:
        self._blocks = dict(enumerate(event.content or ()))
        deltas = [delta for block in self._blocks.values() if (delta := _shown(block)) is not None]
        return Delta(
            "".join(delta.text for delta in deltas), "".join(delta.reasoning for delta in deltas),
            "".join(delta.tool for delta in deltas), event.usage, reason_of(event.stop_reason),
        )  # fmt: skip

    def replay(self) -> Sequence[Message] | None:
        """One message with the blocks in their order; None for an answer of nothing but one text."""
        blocks, inputs = self._whole_blocks()
        for index, text in inputs.items():
            blocks[index]["input"] = _input(text)
        content = [
            blocks[index] for index in sorted(blocks) if blocks[index].get("type") != "text" or blocks[index].get("text")
        ]
        if not content or (len(content) == 1 and content[0].keys() == {"type", "text"}):
            return None
        return [Message.of({"role": "assistant", "content": content})]

    def tool_calls(self) -> Sequence[ToolCall]:
        """The calls that wait for a result: those of ``server_tool_use`` have it."""
        blocks, inputs = self._whole_blocks()
        return [
            called(block.get("id"), block.get("name"), inputs.get(index) or block.get("input"))
            for index, block in sorted(blocks.items()) if block.get("type") == "tool_use"
        ]  # fmt: skip

    def _whole_blocks(self) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
        """The blocks with their pieces, and the texts of the inputs that came in pieces."""
        blocks = {index: dict(block) for index, block in self._blocks.items()}
        inputs: dict[int, str] = {}
        for index, piece in self._pieces:
            block = blocks.setdefault(index, {"type": "text"})
            field = _FIELDS.get(piece.type)
            if field == "input":
                inputs[index] = inputs.get(index, "") + (piece.partial_json or "")
            elif field is not None:
                block[field] = block.get(field, "") + (getattr(piece, field) or "")
        return blocks, inputs


def _shown(block: dict[str, Any]) -> Delta | None:
    """What a block counts as, as far as it is there; None for nothing."""
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return Delta(text) if isinstance(text, str) and text else None
    if kind == "thinking":
        text = block.get("thinking")
        return Delta("", text) if isinstance(text, str) and text else None
    if kind == "redacted_thinking":
        return Delta("", HIDDEN)
    if kind in _TOOLS:
        name, given = block.get("name"), block.get("input")
        arguments = msgspec.json.encode(given).decode() if given else ""
        return Delta("", "", (name if isinstance(name, str) else "") + arguments)
    return None


def _input(text: str) -> dict[str, Any]:
    """The input of a tool; an answer that ends within it has none that a server would take back."""
    try:
        given = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}
    return given if isinstance(given, dict) else {}
