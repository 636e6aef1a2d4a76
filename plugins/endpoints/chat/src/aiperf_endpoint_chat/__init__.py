"""The chat-completions dialect: messages out; text, reasoning and tool calls back, streamed or whole."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from aiperf import Capabilities, ConfigError, Delta, Endpoint, HttpRequest, Turn, in_band_error, unreadable
from msgspec import Struct

from aiperf_endpoint_chat.messages import rendered

_FORCE_PARTS = "AIPERF_ENDPOINT_FORCE_CONTENT_PARTS"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: Any = None  # a string by the book; some servers send the object itself


class _ToolCall(Struct, gc=False):
    function: _Function | None = None


class _Part(Struct, gc=False):
    text: str | None = None


class _Said(Struct, gc=False):
    """A delta, or a whole message."""

    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(Struct, gc=False):
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: str | None = None


class _Answer(Struct, gc=False):
    """A chunk, or a whole answer.  Which one ``object`` says is not asked: not every server says it rightly."""

    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Answer).decode


class Chat(Endpoint):
    """``POST /v1/chat/completions``.

    With ``AIPERF_ENDPOINT_FORCE_CONTENT_PARTS`` true, a message's content is a list of parts even for a lone text.
    """

    capabilities = Capabilities(
        path="/v1/chat/completions",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image", "audio", "video"),
        system_message=True,
        multi_turn=True,
        per_chunk_usage=True,
    )
    repeats_envelope = True

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        legacy = options is not None and options.use_legacy_max_tokens
        self.length_field = "max_tokens" if legacy else "max_completion_tokens"
        forced = os.environ.get(_FORCE_PARTS, "").strip().lower()
        if forced not in _TRUE + _FALSE:
            raise ConfigError(f"{_FORCE_PARTS} is {forced!r}; it must be true or false")
        self.parts = forced in _TRUE

    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {
            "messages": rendered(turn.messages, parts=self.parts),
            "model": turn.model,
            "stream": turn.stream,
        }
        if turn.max_tokens is not None:
            body[self.length_field] = turn.max_tokens
        body.update(turn.extra)
        if body["stream"]:
            asked = body.get("stream_options", {})
            if isinstance(asked, dict):  # anything else is the author's own affair
                wanted = {"include_usage": True} | ({"continuous_usage_stats": True} if turn.per_chunk_usage else {})
                body["stream_options"] = wanted | asked
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def decode(self, event: bytes) -> Delta | None:
        try:
            answer = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if event == b"[DONE]" or not event:
                return None
            raise in_band_error(event) or unreadable("chat", event, error) from error
        choices = answer.choices
        if answer.error or not choices:
            wrong = None if answer.usage and not answer.error else in_band_error(event)
            if wrong is not None:
                raise wrong
            return Delta(usage=answer.usage)
        if len(choices) == 1:
            choice = choices[0]
            said = choice.delta or choice.message
            if said is None:
                return Delta("", "", "", answer.usage, choice.finish_reason)
            text = said.content or ""
            return Delta(
                text if isinstance(text, str) else _joined(text),
                said.reasoning_content or said.reasoning or "",
                _called(said) if said.tool_calls or said.function_call else "",
                answer.usage,
                choice.finish_reason,
            )
        return _together(choices, answer.usage)


def _together(choices: list[_Choice], usage: dict[str, Any] | None) -> Delta:
    """Several choices (``n`` above 1) are all output."""
    said = [each for each in (choice.delta or choice.message for choice in choices) if each is not None]
    return Delta(
        text="".join(each.content if isinstance(each.content, str) else _joined(each.content or []) for each in said),
        reasoning="".join(each.reasoning_content or each.reasoning or "" for each in said),
        tool="".join(map(_called, said)),
        usage=usage,
        finish=next((choice.finish_reason for choice in choices if choice.finish_reason), None),
    )


def _joined(parts: list[_Part]) -> str:
    return "".join(part.text or "" for part in parts)


def _called(said: _Said) -> str:
    """Names and arguments of the calls, one after the other."""
    functions = [call.function for call in said.tool_calls or ()] + [said.function_call]
    return "".join(f"{each.name or ''}{_written(each.arguments)}" for each in functions if each is not None)


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else "" if arguments is None else msgspec.json.encode(arguments).decode()
