"""The {{ cookiecutter.name }} dialect: messages out, text and reasoning back, streamed or whole."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import (
    Capabilities,
    Delta,
    Endpoint,
    HttpRequest,
    Turn,
    in_band_error,
    unreadable,
)
from msgspec import Struct


class _Said(Struct):
    """A delta, or a whole message."""

    content: str | None = None
    reasoning_content: str | None = None


class _Choice(Struct):
    delta: _Said | None = None
    message: _Said | None = None
    finish_reason: str | None = None


class _Answer(Struct):
    """A chunk, or a whole answer: they look alike."""

    choices: list[_Choice] = []
    usage: Any = None


_read = msgspec.json.Decoder(_Answer).decode


class {{ cookiecutter.__class }}(Endpoint):
    """``POST /v1/chat/completions``.

    Verbatim messages and tools are sent as they are.  For keys of ``--extra-inputs`` that are options see ``takes``, for media
    as bytes ``inline_media``, both in ``Capabilities``; for forms ``aiperf.sdk.multipart``; for other input tokens than the
    texts ``Endpoint.prompt_of``; for streams that are no server-sent events ``Endpoint.framing``; for numbers of answers that
    metrics read ``Endpoint.numbers``; for a job that is polled, or a download behind the answer, ``Endpoint.follow``; for long
    answers that nobody reads ``HttpRequest.drain``; for URLs of another protocol ``Capabilities.schemes`` and ``Turn.scheme``;
    for questions to the server before the load ``Endpoint.prepare`` and ``Endpoint.unready``; for token ids in place of texts
    ``takes_ids``.
    """

    capabilities = Capabilities(
        path="/v1/chat/completions",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        system_message=True,
        multi_turn=True,
        verbatim=True,
    )

    # The request that asks whether a server is ready: def probe(self) -> Turn.
    # HttpRequest has path, method and headers of this request; "{model}" in a path becomes the model's name.
    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {
            "model": turn.model,
            "messages": [message.item or {"role": message.role, "content": message.text} for message in turn.messages],
            "stream": turn.stream,
        }
        if turn.stream:
            body["stream_options"] = {"include_usage": True}
        if turn.tools:
            body["tools"] = turn.tools
        if turn.max_tokens is not None:
            body["max_tokens"] = turn.max_tokens
        body.update(turn.extra)
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    # Where events mean something only together: def reader(self) -> aiperf.sdk.endpoint.Reader, in place of decode.  Its
    # tool_calls gives graders the calls of an answer; a Delta has their text as tool.
    def decode(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        try:
            answer = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise in_band_error(event) or unreadable("{{ cookiecutter.__key }}", event, error) from error
        if not answer.choices:  # the closing chunk has only usage; an error has neither
            wrong = in_band_error(event)
            if wrong is not None:
                raise wrong
            return Delta(usage=answer.usage)
        choice = answer.choices[0]
        said = choice.delta or choice.message or _Said()
        return Delta(
            text=said.content or "",
            reasoning=said.reasoning_content or "",
            usage=answer.usage,
            finish=choice.finish_reason,
        )
