"""OpenAI's chat completions and text completions."""

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
    id_bytes,
    to_json,
)
from aiperf_command_simulate.http1 import Request


class _StreamOptions(Struct):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class _Common(Struct):
    model: str = ""
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    n: int | None = None


class _Message(Struct):
    role: str = "user"
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None


class _ChatBody(_Common, kw_only=True):
    messages: list[_Message]
    tools: list[dict[str, Any]] | None = None


class _CompletionBody(_Common, kw_only=True):
    prompt: str | list[str | int | list[int]]


_read_chat = msgspec.json.Decoder(_ChatBody)
_read_completion = msgspec.json.Decoder(_CompletionBody)


def _ask(body: _Common, prompts: tuple[bytes, ...], max_tokens: int | None, *, chat: bool, tool: str | None = None) -> Ask:
    options = body.stream_options or _StreamOptions()
    ask = Ask(
        model=body.model,
        prompts=prompts,
        stream=bool(body.stream),
        # An answer that doesn't stream has its usage anyway.
        include_usage=bool(options.include_usage) or not body.stream,
        continuous_usage=bool(options.continuous_usage_stats),
        max_tokens=max_tokens,
        min_tokens=body.min_tokens or 0,
        ignore_eos=bool(body.ignore_eos),
        choices=1 if body.n is None else body.n,
        chat=chat,
        tool=tool,
    )
    return check_lengths(ask)


class _Lines:
    """JSON around the pieces: the long head is made once an answer."""

    def __init__(self, prefix: str, opened: Opened, kinds: tuple[str, str]) -> None:
        name = f"{prefix}-{opened.number:010d}"
        self._event_kind, self._whole_kind = kinds
        self._about = b'"id":"%b","created":%d,"model":%b' % (name.encode(), opened.created_s, to_json(opened.model))
        self._head = b'{%b,"object":"%b","choices":[' % (self._about, self._event_kind.encode())

    def event(self, choice: bytes, usage: Usage | None) -> bytes:
        if usage is None:
            return b"%b%b]}" % (self._head, choice)
        return b'%b%b],"usage":%b%b}' % (self._head, choice, to_json(usage.written()), _metrics(usage))

    def whole(self, choices: list[bytes], usage: Usage | None) -> bytes:
        tail = b"" if usage is None else b',"usage":%b%b' % (to_json(usage.written()), _metrics(usage))
        return b'{%b,"object":"%b","choices":[%b]%b}' % (self._about, self._whole_kind.encode(), b",".join(choices), tail)


def _metrics(usage: Usage) -> bytes:
    """What vLLM has behind the usage of an answer: its times, and how its decoding was speculative."""
    drafts = {} if usage.drafts is None else {"speculative_decoding": usage.drafts}
    said = {**(usage.timing or {}), **drafts}
    return b',"metrics":%b' % to_json(said) if said else b""


class _ChatWriter(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._lines = _Lines("chatcmpl", opened, ("chat.completion.chunk", "chat.completion"))
        self._called: set[int] = set()

    def _call(self, piece: Piece) -> dict[str, Any]:
        """The first piece of a call has its id and name, as every whole call has."""
        function: dict[str, Any] = {"arguments": piece.call}
        if piece.index in self._called:
            return {"index": 0, "function": function}
        self._called.add(piece.index)
        function = {"name": self.opened.call, **function}
        return {"index": 0, "id": f"call-{self.opened.number}-{piece.index}", "type": "function", "function": function}

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        delta: dict[str, Any] = {}
        if piece.reasoning:
            delta["reasoning_content"] = piece.reasoning
        if piece.text:
            delta["content"] = piece.text
        if piece.call:
            delta["tool_calls"] = [self._call(piece)]
        finish = to_json(_finish(piece, self.opened.call))
        choice = b'{"index":%d,"delta":%b,"finish_reason":%b}' % (piece.index, to_json(delta), finish)
        return self.frame(self._lines.event(choice, usage))

    def opening(self, index: int) -> bytes:
        delta = b'{"role":"assistant","content":""}'
        return self.frame(self._lines.event(b'{"index":%d,"delta":%b,"finish_reason":null}' % (index, delta), None))

    def closing(self, usage: Usage | None) -> bytes:
        return b"" if usage is None else self.frame(self._lines.event(b"", usage))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        choices = []
        for piece in pieces:
            message: dict[str, Any] = {"role": "assistant", "content": piece.text or None}
            if piece.reasoning:
                message["reasoning_content"] = piece.reasoning
            if piece.call:
                call = self._call(piece)
                del call["index"]
                message["tool_calls"] = [call]
            finish = _finish(piece, self.opened.call)
            choices.append(to_json({"index": piece.index, "message": message, "finish_reason": finish}))
        return self._lines.whole(choices, usage)


def _finish(piece: Piece, call: str | None) -> str | None:
    return "tool_calls" if call and piece.finish == "stop" else piece.finish


class Chat(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/chat/completions",)
    reasons = True

    def read(self, request: Request) -> Ask:
        asked = decoded(_read_chat, request, "chat request")
        if not asked.messages:
            raise AskError("messages is empty; at least one is needed")
        lines = [to_json(asked.tools)] if asked.tools else []
        for message in asked.messages:
            calls = to_json(message.tool_calls) if message.tool_calls else b""
            lines.append(chat_line(message.role, content_bytes(message.content) + calls))
        most = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
        tool = tool_name(asked.tools)
        return _ask(asked, (b"".join(lines),), most, chat=True, tool=tool)

    def writer(self, opened: Opened) -> Writer:
        return _ChatWriter(opened)


def tool_name(tools: list[dict[str, Any]] | None) -> str | None:
    """The name of the first tool, in either of the forms that servers accept; None where there is none."""
    for tool in tools or ():
        for described in (tool.get("function"), tool):
            if isinstance(described, dict) and isinstance(name := described.get("name"), str):
                return name
    return None


class _CompletionWriter(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._lines = _Lines("cmpl", opened, ("text_completion", "text_completion"))

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        choice = b'{"index":%d,"text":%b,"finish_reason":%b}' % (piece.index, to_json(piece.text), to_json(piece.finish))
        return self.frame(self._lines.event(choice, usage))

    def closing(self, usage: Usage | None) -> bytes:
        return b"" if usage is None else self.frame(self._lines.event(b"", usage))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        choices = [to_json({"index": piece.index, "text": piece.text, "finish_reason": piece.finish}) for piece in pieces]
        return self._lines.whole(choices, usage)


class Completions(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/completions",)

    def read(self, request: Request) -> Ask:
        asked = decoded(_read_completion, request, "completion request")
        prompt = asked.prompt
        if isinstance(prompt, str):
            prompts: tuple[bytes, ...] = (prompt.encode(),)
        elif prompt and all(isinstance(item, int) for item in prompt):
            prompts = (id_bytes([item for item in prompt if isinstance(item, int)]),)
        else:
            prompts = tuple(id_bytes(item) if isinstance(item, list) else str(item).encode() for item in prompt)
        if not prompts:
            raise AskError("prompt is an empty list; at least one is needed")
        return _ask(asked, prompts, asked.max_tokens, chat=False)

    def writer(self, opened: Opened) -> Writer:
        return _CompletionWriter(opened)


ROUTES = (Chat(), Completions())
