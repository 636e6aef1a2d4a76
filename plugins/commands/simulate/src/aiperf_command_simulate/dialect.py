"""The two dialects of the server: reading requests, and writing pieces of answers."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import msgspec
from msgspec import Struct

_MEDIA_BYTES = 1024
"""A picture, clip or film counts as 256 prompt tokens, whatever its size."""
_MOST_CHOICES = 128

_json = msgspec.json.Encoder().encode


class AskError(Exception):
    """The request makes no sense; the message is a sentence for the client."""


class Ask(Struct, frozen=True):
    """What a request asks for.

    prompts: one or several, as the bytes whose quarter is the token count.  choices: answers to each.
    max_tokens: None leaves the length to the server.
    """

    model: str
    prompts: tuple[bytes, ...]
    stream: bool
    include_usage: bool
    continuous_usage: bool
    max_tokens: int | None
    min_tokens: int
    ignore_eos: bool
    choices: int
    chat: bool


class Usage(Struct, frozen=True):
    """Token counts of an answer so far; *reasoning* is a part of *completion*, *cached* one of *prompt*."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0

    def written(self) -> dict[str, Any]:
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }
        if self.reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": self.reasoning}
        return usage


class Piece(Struct, frozen=True):
    """A piece of one choice's answer, or all of it.  finish: the reason of its end, None if it goes on."""

    index: int
    text: str
    reasoning: str = ""
    finish: str | None = None


class Writer(Protocol):
    """Writes one answer down as JSON."""

    def event(self, piece: Piece, usage: Usage | None) -> bytes: ...

    def opening(self, index: int) -> bytes | None:
        """The event before a choice's first piece; None where the dialect has none."""
        ...

    def closing(self, usage: Usage) -> bytes:
        """The event that carries usage alone."""
        ...

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes: ...


class Dialect(Protocol):
    path: str
    reasons: bool

    def read(self, body: bytes) -> Ask:
        """What *body* asks for.

        Raises:
            AskError: It can't be read, or asks for something impossible.
        """
        ...

    def writer(self, number: int, created_s: int, model: str) -> Writer: ...


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


class _ChatBody(_Common, kw_only=True):
    messages: list[_Message]
    tools: msgspec.Raw = msgspec.Raw(b"")


class _CompletionBody(_Common, kw_only=True):
    prompt: str | list[str | int | list[int]]


_read_chat = msgspec.json.Decoder(_ChatBody).decode
_read_completion = msgspec.json.Decoder(_CompletionBody).decode


def _ask(body: _Common, prompts: tuple[bytes, ...], max_tokens: int | None, *, chat: bool) -> Ask:
    if max_tokens is not None and max_tokens < 1:
        raise AskError(f"max_tokens is {max_tokens}; at least 1 token can be made")
    choices = 1 if body.n is None else body.n
    if not 1 <= choices * len(prompts) <= _MOST_CHOICES:
        raise AskError(f"{choices} answers to each of {len(prompts)} prompts; 1 to {_MOST_CHOICES} in all can be made")
    least = body.min_tokens or 0
    if max_tokens is not None and least > max_tokens:
        raise AskError(f"min_tokens is {least}, which is more than max_tokens, {max_tokens}")
    options = body.stream_options or _StreamOptions()
    return Ask(
        model=body.model,
        prompts=prompts,
        stream=bool(body.stream),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.continuous_usage_stats),
        max_tokens=max_tokens,
        min_tokens=least,
        ignore_eos=bool(body.ignore_eos),
        choices=choices,
        chat=chat,
    )


def _part(part: dict[str, Any]) -> bytes:
    text = part.get("text")
    if isinstance(text, str):
        return text.encode()
    digest = hashlib.blake2b(msgspec.json.encode(part)).digest()
    return digest * (_MEDIA_BYTES // len(digest))


def chat_line(role: str, content: bytes) -> bytes:
    """One message as prompt bytes, as a chat template would write it."""
    return b"%b\n%b\n" % (role.encode(), content)


class _Lines:
    """JSON around the pieces: the long head is made once an answer."""

    def __init__(self, prefix: str, number: int, kinds: tuple[str, str], created_s: int, model: str) -> None:
        name = f"{prefix}-{number:010d}"
        self._event_kind, self._whole_kind = kinds
        self._about = b'"id":"%b","created":%d,"model":%b' % (name.encode(), created_s, _json(model))
        self._head = b'{%b,"object":"%b","choices":[' % (self._about, self._event_kind.encode())

    def event(self, choice: bytes, usage: Usage | None) -> bytes:
        if usage is None:
            return b"%b%b]}" % (self._head, choice)
        return b'%b%b],"usage":%b}' % (self._head, choice, _json(usage.written()))

    def whole(self, choices: list[bytes], usage: Usage | None) -> bytes:
        tail = b"" if usage is None else b',"usage":%b' % _json(usage.written())
        return b'{%b,"object":"%b","choices":[%b]%b}' % (self._about, self._whole_kind.encode(), b",".join(choices), tail)


class _ChatWriter:
    def __init__(self, number: int, created_s: int, model: str) -> None:
        self._lines = _Lines("chatcmpl", number, ("chat.completion.chunk", "chat.completion"), created_s, model)

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        delta: dict[str, str] = {}
        if piece.reasoning:
            delta["reasoning_content"] = piece.reasoning
        if piece.text:
            delta["content"] = piece.text
        choice = b'{"index":%d,"delta":%b,"finish_reason":%b}' % (piece.index, _json(delta), _json(piece.finish))
        return self._lines.event(choice, usage)

    def opening(self, index: int) -> bytes | None:
        delta = b'{"role":"assistant","content":""}'
        return self._lines.event(b'{"index":%d,"delta":%b,"finish_reason":null}' % (index, delta), None)

    def closing(self, usage: Usage) -> bytes:
        return self._lines.event(b"", usage)

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        choices = []
        for piece in pieces:
            message: dict[str, str | None] = {"role": "assistant", "content": piece.text or None}
            if piece.reasoning:
                message["reasoning_content"] = piece.reasoning
            choices.append(_json({"index": piece.index, "message": message, "finish_reason": piece.finish}))
        return self._lines.whole(choices, usage)


class Chat:
    path = "/v1/chat/completions"
    reasons = True

    def read(self, body: bytes) -> Ask:
        try:
            asked = _read_chat(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise AskError(f"the body is no chat request: {exc}") from exc
        if not asked.messages:
            raise AskError("messages is empty; at least one is needed")
        lines = [bytes(asked.tools)] if asked.tools else []
        for message in asked.messages:
            content = message.content or ""
            parts = content.encode() if isinstance(content, str) else b"".join(map(_part, content))
            lines.append(chat_line(message.role, parts))
        most = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
        return _ask(asked, (b"".join(lines),), most, chat=True)

    def writer(self, number: int, created_s: int, model: str) -> Writer:
        return _ChatWriter(number, created_s, model)


class _CompletionWriter:
    def __init__(self, number: int, created_s: int, model: str) -> None:
        self._lines = _Lines("cmpl", number, ("text_completion", "text_completion"), created_s, model)

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        choice = b'{"index":%d,"text":%b,"finish_reason":%b}' % (piece.index, _json(piece.text), _json(piece.finish))
        return self._lines.event(choice, usage)

    def opening(self, index: int) -> bytes | None:
        return None

    def closing(self, usage: Usage) -> bytes:
        return self._lines.event(b"", usage)

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        choices = [_json({"index": piece.index, "text": piece.text, "finish_reason": piece.finish}) for piece in pieces]
        return self._lines.whole(choices, usage)


class Completions:
    path = "/v1/completions"
    reasons = False

    def read(self, body: bytes) -> Ask:
        try:
            asked = _read_completion(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise AskError(f"the body is no completion request: {exc}") from exc
        prompt = asked.prompt
        if isinstance(prompt, str):
            prompts: tuple[bytes, ...] = (prompt.encode(),)
        elif prompt and all(isinstance(item, int) for item in prompt):
            prompts = (_ids(prompt),)
        else:
            prompts = tuple(_ids(item) if isinstance(item, list) else str(item).encode() for item in prompt)
        if not prompts:
            raise AskError("prompt is an empty list; at least one is needed")
        return _ask(asked, prompts, asked.max_tokens, chat=False)

    def writer(self, number: int, created_s: int, model: str) -> Writer:
        return _CompletionWriter(number, created_s, model)


def _ids(ids: list[Any]) -> bytes:
    """Token ids as prompt bytes, four each, so that one id counts as one token."""
    try:
        return b"".join(one.to_bytes(4, "little") for one in ids)
    except OverflowError as exc:
        raise AskError("prompt holds a number that is no token id") from exc
