"""The chat-completions dialect: encodes messages; decodes text, reasoning and tool calls, streamed or whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiperf import (
    Capabilities,
    ConfigError,
    Delta,
    Endpoint,
    HttpRequest,
    Media,
    Message,
    Turn,
    in_band_error,
    unreadable,
)
from aiperf.sdk.endpoint import ChatPrompt, Prompt
from aiperf.sdk.model import REFUSED
from aiperf_dialects.chat_messages import chat_messages
from aiperf_dialects.choices import reason_of
from aiperf_dialects.prompts import chat_of, prompt_of
from aiperf_dialects.spec_decode import NO_METRICS, SERVER_TIMING, SPEC_DECODE, server_metrics
from aiperf_dialects.tool_calls import arguments_text
from msgspec import Raw, Struct
from msgspec.structs import replace

from aiperf_endpoint_chat.options import ChatOptions
from aiperf_endpoint_chat.replay import ChatReader

_FORCE_PARTS = "AIPERF_ENDPOINT_FORCE_CONTENT_PARTS"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: Any = None  # a string in the specification; some servers send an object


class _ToolCall(Struct, gc=False):
    function: _Function | None = None


class _Part(Struct, gc=False):
    text: str | None = None


class _Audio(Struct, gc=False):
    """Sound, or a piece of it; its text is the transcript."""

    transcript: str | None = None
    data: str | None = None


class _Message(Struct, gc=False):
    """A delta or a whole message."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    audio: _Audio | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(Struct, gc=False):
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: Any = None


class _Answer(Struct, gc=False):
    """A chunk or a whole answer.  ``object`` is ignored, because some servers fill it wrongly."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    metrics: Raw = NO_METRICS


_read = msgspec.json.Decoder(_Answer).decode


class Chat(Endpoint[ChatOptions]):
    """``POST /v1/chat/completions``.

    With ``AIPERF_ENDPOINT_FORCE_CONTENT_PARTS`` true, a message's content is always a list of parts.
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
        verbatim=True,
        cache_bust=True,
        chat_template=True,
    )
    texts = (SPEC_DECODE, SERVER_TIMING)
    repeats_envelope = True
    plain_prompts = True
    splices_text = True

    def __init__(self, options: ChatOptions | None = None) -> None:
        super().__init__(options or ChatOptions())
        self.length_field = "max_tokens" if self.options.use_legacy_max_tokens else "max_completion_tokens"
        forced = os.environ.get(_FORCE_PARTS, "").strip().lower()
        if forced not in _TRUE + _FALSE:
            raise ConfigError(f"{_FORCE_PARTS} is {forced!r}; it must be true or false")
        self.parts = forced in _TRUE
        self.appends_messages = not self.options.uuid_and_strip  # which looks at the messages before

    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {
            "messages": chat_messages(_stripped(turn) if self.options.uuid_and_strip else turn.messages, parts=self.parts),
            "model": turn.model,
            "stream": turn.stream,
        }
        if turn.tools:
            body["tools"] = turn.tools
        if turn.max_tokens is not None:
            body[self.length_field] = turn.max_tokens
        body.update(turn.extra)
        if body["stream"]:
            given = body.get("stream_options", {})
            if isinstance(given, dict):  # any other value is sent as given
                defaults = {"include_usage": True} | ({"continuous_usage_stats": True} if turn.per_chunk_usage else {})
                body["stream_options"] = defaults | given
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        return chat_of(request.body)

    def reader(self) -> ChatReader:
        return ChatReader(self.decode)

    def decode(self, event: bytes) -> Delta | None:
        try:
            answer = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if event == b"[DONE]" or not event:
                return None
            raise in_band_error(event) or unreadable("chat", event, error) from error
        choices = answer.choices
        extra = server_metrics(answer.metrics) if answer.metrics else None
        if answer.error or not choices:
            failure = None if answer.usage and not answer.error else in_band_error(event)
            if failure is not None:
                raise failure
            return Delta(usage=answer.usage, extra=extra)
        if len(choices) == 1:
            choice = choices[0]
            message = choice.delta or choice.message
            finish = choice.finish_reason if choice.finish_reason is None else reason_of(choice.finish_reason)
            if message is None:
                return Delta("", "", "", answer.usage, finish, 0, extra)
            text, sounds = message.content or "", 0
            if message.refusal or message.audio:
                text, sounds, extra = _otherwise(message, extra)
            return Delta(
                text if isinstance(text, str) else _joined(text),
                message.reasoning_content or message.reasoning or "",
                _calls(message) if message.tool_calls or message.function_call else "",
                answer.usage,
                finish,
                sounds,
                extra,
            )
        return _merged(choices, answer.usage, extra)


def _stripped(turn: Turn) -> list[Message]:
    """The messages, where images that the session sent before, and repeated ones, are uuids without content."""
    sent = {media.uuid for message in turn.history for media in message.media if media.uuid is not None}
    return [
        replace(message, media=tuple(_once(message.media, sent))) if message.media else message for message in turn.messages
    ]


def _once(media: Sequence[Media], sent: set[str]) -> Iterator[Media]:
    """The media of one message; notes in *sent* the uuids that it sends."""
    for each in media:
        yield replace(each, value="") if each.uuid in sent else each
        if each.uuid is not None:
            sent.add(each.uuid)


def _otherwise(message: _Message, extra: dict[str, Any] | None) -> tuple[str, int, dict[str, Any] | None]:
    """Text, number of pieces of sound without text, and extra values of a message that may say more than its content."""
    text, audio = message.content or "", message.audio or _Audio()
    text = text if isinstance(text, str) else _joined(text)
    if text:
        return text, 0, extra
    if message.refusal:
        return message.refusal, 0, {**(extra or {}), REFUSED: 1.0}
    return audio.transcript or "", int(bool(audio.data and not audio.transcript)), extra


def _merged(choices: list[_Choice], usage: Any, extra: dict[str, Any] | None) -> Delta:
    """The output of several choices (``n`` above 1) as one delta."""
    messages = [message for message in (choice.delta or choice.message for choice in choices) if message is not None]
    said = [_otherwise(message, None) for message in messages]
    for _, _, more in said:
        extra = {**(extra or {}), **more} if more else extra
    return Delta(
        text="".join(text for text, _, _ in said),
        reasoning="".join(message.reasoning_content or message.reasoning or "" for message in messages),
        tool="".join(map(_calls, messages)),
        usage=usage,
        finish=next((reason_of(choice.finish_reason) for choice in choices if choice.finish_reason), None),
        items=sum(sounds for _, sounds, _ in said),
        extra=extra,
    )


def _joined(parts: list[_Part]) -> str:
    return "".join(part.text or "" for part in parts)


def _calls(message: _Message) -> str:
    """Names and arguments of all calls, joined."""
    functions = [call.function for call in message.tool_calls or ()] + [message.function_call]
    return "".join(f"{call.name or ''}{arguments_text(call.arguments)}" for call in functions if call is not None)
