"""The generate extension of Triton: encodes ``text_input``; decodes ``text_output``, in pieces or as the whole text so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.growing import BatchReader, GrowingText
from aiperf_dialects.prompts import prompt_of
from msgspec import Struct


class Answer(Struct, gc=False):
    """An event, or a whole answer: both have the same form."""

    text_output: str | list[str] | None = None


class GenerateReader(BatchReader[Answer]):
    """Reads one answer; a model may be configured to repeat the text so far with every event."""

    dialect, event_type = "generate", Answer

    def __init__(self) -> None:
        self._text = GrowingText()
        self._new = self._text.new

    def delta(self, event: Answer, data: bytes) -> Delta | None:
        text = event.text_output
        if text is None:
            return self.empty(data)
        return Delta(self._new(text if isinstance(text, str) else "".join(text)))

    def choices(self) -> Sequence[Delta] | None:
        """The answer's text, where a part of it was taken back."""
        return [Delta(self._text.whole or "")] if self._text.took_back else None


class Generate(Endpoint):
    """``POST /v2/models/MODEL/generate``, streamed ``…/generate_stream``."""

    capabilities = Capabilities(
        path="/v2/models/{model}/generate",
        streaming_path="/v2/models/{model}/generate_stream",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        service_kind="triton",
    )
    plain_prompts = True
    splices_text = True
    takes_back = True

    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {"text_input": list(turn.texts) if len(turn.texts) > 1 else turn.text}
        if turn.stream:
            body["stream"] = True
        if turn.max_tokens is not None:
            body["max_tokens"] = turn.max_tokens
        body.update(turn.extra)
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def reader(self) -> GenerateReader:
        return GenerateReader()
