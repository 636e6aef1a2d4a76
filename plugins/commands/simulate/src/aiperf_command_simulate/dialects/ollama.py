"""Ollama's ``/api/chat``: a JSON object in each line, and durations in the last one."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    MEDIA_BYTES,
    Ask,
    AskError,
    Dialect,
    Lines,
    Opened,
    Piece,
    Usage,
    Writer,
    chat_line,
    check_lengths,
    decoded,
    to_json,
)
from aiperf_command_simulate.dialects.openai import tool_name
from aiperf_command_simulate.http1 import Request

_LOAD_NS = 1_500_000
"""What a server says of a model that is loaded."""


class _Options(Struct, frozen=True):
    num_predict: int | None = None
    num_ctx: int | None = None


class _Message(Struct):
    role: str = "user"
    content: str = ""
    images: list[str] = []
    tool_calls: list[dict[str, Any]] | None = None


class _Body(Struct):
    model: str
    messages: list[_Message]
    stream: bool = True
    options: _Options = _Options()
    tools: list[dict[str, Any]] | None = None


_read = msgspec.json.Decoder(_Body)


class _OllamaWriter(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._begun_ns = time.monotonic_ns()
        self._finish: str | None = None
        self._call = ""

    def _line(self, message: dict[str, Any], rest: dict[str, Any]) -> bytes:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return to_json({"model": self.opened.model, "created_at": stamp, "message": {"role": "assistant", **message}, **rest})

    def _said(self, pieces: list[Piece]) -> dict[str, Any]:
        message: dict[str, Any] = {"content": "".join(piece.text for piece in pieces)}
        thinking = "".join(piece.reasoning for piece in pieces)
        if thinking:
            message["thinking"] = thinking
        self._call += "".join(piece.call for piece in pieces)
        if self._call and pieces[-1].finish:  # a call comes in one piece
            function = {"name": self.opened.call, "arguments": msgspec.json.decode(self._call)}
            message["tool_calls"] = [{"function": function}]
        return message

    def _end(self, usage: Usage | None) -> dict[str, Any]:
        total = time.monotonic_ns() - self._begun_ns
        end: dict[str, Any] = {"done": True, "done_reason": self._finish, "total_duration": total + _LOAD_NS}
        end |= {"load_duration": _LOAD_NS, "prompt_eval_duration": total // 4, "eval_duration": total - total // 4}
        context = self.opened.ask.own
        if usage is not None:  # a longer prompt is cut to the context without a word
            counted = usage.prompt if context is None else min(usage.prompt, context)
            end |= {"prompt_eval_count": counted, "eval_count": usage.completion}
        return end

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._finish = piece.finish or self._finish
        return self.frame(self._line(self._said([piece]), {"done": False}))

    def closing(self, usage: Usage | None) -> bytes:
        return self.frame(self._line({"content": ""}, self._end(usage)))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        self._finish = pieces[0].finish
        return self._line(self._said(pieces), self._end(usage))


class Ollama(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/api/chat",)
    reasons = True
    done = None
    framing = Lines

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "chat request of Ollama")
        if not asked.messages:
            raise AskError("messages is empty; at least one is needed")
        lines = [to_json(asked.tools)] if asked.tools else []
        for message in asked.messages:
            pictures = b"".join(image.encode()[:MEDIA_BYTES].ljust(MEDIA_BYTES, b".") for image in message.images)
            calls = to_json(message.tool_calls) if message.tool_calls else b""
            lines.append(chat_line(message.role, message.content.encode() + pictures + calls))
        most = asked.options.num_predict
        ask = Ask(
            model=asked.model,
            prompts=(b"".join(lines),),
            stream=asked.stream,
            max_tokens=None if most is not None and most < 0 else most,
            chat=True,
            tool=tool_name(asked.tools),
            own=asked.options.num_ctx,
        )
        return check_lengths(ask)

    def writer(self, opened: Opened) -> Writer:
        return _OllamaWriter(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"error": message})


ROUTES = (Ollama(),)
