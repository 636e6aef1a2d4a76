"""Anthropic's Messages."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Piece,
    Usage,
    Writer,
    chat_line,
    check_lengths,
    content_bytes,
    decoded,
    to_json,
)
from aiperf_command_simulate.http1 import Request

_STOPS = {"length": "max_tokens", "stop": "end_turn"}


class _Message(Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Body(Struct):
    model: str
    messages: list[_Message]
    max_tokens: int
    system: str | list[dict[str, Any]] | None = None
    stream: bool = False
    tools: list[dict[str, Any]] | None = None
    ignore_eos: bool = False


_read = msgspec.json.Decoder(_Body)


class _Writer(Writer):
    """Blocks in order: thinking, then text or the use of a tool."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._open = ""
        self._blocks = -1
        self._finish: str | None = None

    def _event(self, name: str, **fields: Any) -> bytes:
        return self.frame(to_json({"type": name, **fields}), name.encode())

    def _message(self, content: list[Any], usage: Any, stop: str | None) -> dict[str, Any]:
        opened = self.opened
        return {
            "id": f"msg_{opened.number:010d}", "type": "message", "role": "assistant", "model": opened.model,
            "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }  # fmt: skip

    def begin(self, prompt_tokens: int) -> bytes:
        usage = {"input_tokens": prompt_tokens, "output_tokens": 0}
        return self._event("message_start", message=self._message([], usage, None)) + self._event("ping")

    def _switched(self, kind: str) -> bytes:
        """The end of the open block, where it is of another kind, and the start of the next; "" starts none."""
        if kind == self._open:
            return b""
        events = self._event("content_block_stop", index=self._blocks) if self._open else b""
        if self._open == "thinking":
            signature = self._event(
                "content_block_delta", index=self._blocks, delta={"type": "signature_delta", "signature": "c2ln"}
            )
            events = signature + events
        self._open = kind
        if kind:
            self._blocks += 1
            events += self._event("content_block_start", index=self._blocks, content_block=self._block(kind))
        return events

    def _block(self, kind: str) -> dict[str, Any]:
        if kind == "tool_use":
            return {"type": kind, "id": f"toolu_{self.opened.number:010d}", "name": self.opened.call, "input": {}}
        return {"type": "text", "text": ""} if kind == "text" else {"type": kind, "thinking": "", "signature": ""}

    def _more(self, kind: str, delta: dict[str, Any]) -> bytes:
        return self._switched(kind) + self._event("content_block_delta", index=self._blocks, delta=delta)

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._finish = piece.finish
        events = b""
        if piece.reasoning:
            events += self._more("thinking", {"type": "thinking_delta", "thinking": piece.reasoning})
        if piece.text:
            events += self._more("text", {"type": "text_delta", "text": piece.text})
        if piece.call:
            events += self._more("tool_use", {"type": "input_json_delta", "partial_json": piece.call})
        return events

    def closing(self, usage: Usage | None) -> bytes:
        delta = {"stop_reason": self._stop(self._finish), "stop_sequence": None}
        counts = {"output_tokens": 0} if usage is None else _counts(usage)
        return self._switched("") + self._event("message_delta", delta=delta, usage=counts) + self._event("message_stop")

    def _stop(self, finish: str | None) -> str:
        return "tool_use" if self.opened.call and finish == "stop" else _STOPS[finish or "stop"]

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        (piece,) = pieces
        content: list[dict[str, Any]] = []
        if piece.reasoning:
            content.append({"type": "thinking", "thinking": piece.reasoning, "signature": "c2ln"})
        if piece.text:
            content.append({"type": "text", "text": piece.text})
        if piece.call:
            content.append({**self._block("tool_use"), "input": msgspec.json.decode(piece.call)})
        return to_json(self._message(content, None if usage is None else _counts(usage), self._stop(piece.finish)))


def _counts(usage: Usage) -> dict[str, int]:
    """What was cached is counted apart from the other input."""
    return {
        "input_tokens": usage.prompt - usage.cached, "cache_read_input_tokens": usage.cached, "output_tokens": usage.completion
    }  # fmt: skip


class Messages(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/messages",)
    reasons = True
    done = None

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "messages request")
        if not asked.messages:
            raise AskError("messages is empty; at least one is needed")
        lines = [to_json(asked.tools)] if asked.tools else []
        if asked.system:
            lines.append(chat_line("system", content_bytes(asked.system)))
        lines += [chat_line(message.role, content_bytes(message.content)) for message in asked.messages]
        tool = asked.tools[0].get("name") if asked.tools else None
        return check_lengths(Ask(
            model=asked.model, prompts=(b"".join(lines),), stream=asked.stream, max_tokens=asked.max_tokens, chat=True,
            ignore_eos=asked.ignore_eos, tool=tool if isinstance(tool, str) else None,
        ))  # fmt: skip

    def writer(self, opened: Opened) -> Writer:
        return _Writer(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"type": "error", "error": {"type": kind, "message": message}})


ROUTES = (Messages(),)
