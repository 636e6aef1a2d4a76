"""A Messages API: named events, blocks of text and thinking, and usage that is split between the first and the last event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Message, Turn, in_band_error, unreadable
from aiperf.sdk.endpoint import Reader
from aiperf.sdk.model import ToolCall
from msgspec import Struct

_TEXT = {"text": "text", "text_delta": "text", "thinking": "thinking", "thinking_delta": "thinking"}
"""By type of a block or of its delta, the field with its text."""


class _Event(Struct, gc=False):
    """An event, or a whole answer."""

    type: str
    index: int = 0
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    content: list[dict[str, Any]] | None = None
    container: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None


_read = msgspec.json.Decoder(_Event).decode
_read_object = msgspec.json.Decoder(dict[str, Any]).decode


def _text(given: dict[str, Any]) -> str:
    return msgspec.json.encode(given).decode()


def _delta(part: dict[str, Any]) -> Delta:
    if part.get("type") in ("tool_use", "input_json_delta"):
        given = part.get("input")
        return Delta(tool=part.get("name", "") + part.get("partial_json", "") + (_text(given) if given else ""))
    text = part.get(_TEXT.get(part.get("type", ""), ""), "")
    return Delta(reasoning=text) if "thinking" in part else Delta(text)


class Letter(Reader):
    """Reads one answer, and keeps its blocks, because a server takes thinking back only with its signature."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._container: str | None = None
        self._begun = self._stopped = False

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return list(map(self._one, events))

    def _one(self, data: bytes) -> Delta | None:
        if data == b"[DONE]":
            return None
        try:
            event = _read(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise in_band_error(data) or unreadable("letters", data, error) from error
        if event.type == "error":
            raise in_band_error(data) or BadResponse("letters: an error without words", raw=data)
        if event.type == "message":
            return self._whole(event)
        if event.type == "message_start":
            self._begun = True
            message = event.message or {}
            self._container = (message.get("container") or {}).get("id")
            return Delta(usage=message.get("usage"))
        if event.type == "content_block_start" and event.content_block is not None:
            self._blocks[event.index] = dict(event.content_block)
            return _delta(event.content_block)
        if event.type == "content_block_delta" and event.delta is not None:
            block = self._blocks.setdefault(event.index, {"type": "text", "text": ""})
            if "partial_json" in event.delta:
                block["json"] = block.get("json", "") + event.delta["partial_json"]
            for field in ("text", "thinking", "signature"):
                if field in event.delta:
                    block[field] = block.get(field, "") + event.delta[field]
            return _delta(event.delta)
        if event.type == "message_delta" and event.delta is not None:
            self._stopped = True
            return Delta(usage=event.usage, finish=event.delta.get("stop_reason"))
        return None

    def _whole(self, event: _Event) -> Delta:
        self._blocks = dict(enumerate(event.content or []))
        self._container = (event.container or {}).get("id")
        deltas = list(map(_delta, self._blocks.values()))
        return Delta(
            text="".join(delta.text for delta in deltas), reasoning="".join(delta.reasoning for delta in deltas),
            tool="".join(delta.tool for delta in deltas), usage=event.usage, finish=event.stop_reason,
        )  # fmt: skip

    def close(self) -> Delta | None:
        if self._begun and not self._stopped:
            raise BadResponse("letters: the answer ends in the middle of a message")
        return None

    def replay(self) -> Sequence[Message]:
        blocks = (dict(self._blocks[index]) for index in sorted(self._blocks))
        sent = [block | {"input": _read_object(block.pop("json"))} if block.get("json") else block for block in blocks]
        return (Message.of({"role": "assistant", "content": sent}),)

    def tool_calls(self) -> Sequence[ToolCall]:
        calls = (self._blocks[index] for index in sorted(self._blocks) if self._blocks[index].get("type") == "tool_use")
        return [ToolCall(call["id"], call["name"], call.get("json") or _text(call["input"])) for call in calls]

    def state(self) -> dict[str, Any]:
        return {} if self._container is None else {"container": self._container}


class Letters(Endpoint):
    """``POST /v1/messages``."""

    capabilities = Capabilities(
        path="/v1/messages", streaming=True, produces_tokens=True, tokenizes_input=True, system_message=True, multi_turn=True
    )
    repeats_envelope = True

    def encode(self, turn: Turn) -> HttpRequest:
        messages = [message.item or {"role": message.role, "content": message.text} for message in turn.messages]
        body = {"model": turn.model, "messages": messages, "max_tokens": turn.max_tokens or 1024, **turn.state, **turn.extra}
        if turn.stream:
            body["stream"] = True
        headers = {"anthropic-version": "2023-06-01"}
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body), headers)

    def reader(self) -> Reader:
        return Letter()

    def auth_headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}
